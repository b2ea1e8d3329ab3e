"""Attacks on the shipped code: what `make audit` runs, and what the tests run shorter.

Not part of the package. `cases` is the table of mechanisms and of planted faults, `attack` turns releases
of two neighbouring tables into a lower bound on epsilon, `neighbours` searches for the pair of tables that
moves a release furthest, `fuzzing` feeds the readers and the command line with hostile input.
"""
