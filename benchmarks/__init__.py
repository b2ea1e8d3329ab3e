"""Studies and benchmarks; each is a command of its own."""
