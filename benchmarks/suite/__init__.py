"""Benchmarks of single parts beside what a user would take instead, in the same run: `make bench-suite`."""
