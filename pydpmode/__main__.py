"""`python -m pydpmode` is the command line."""

from .cli import run

run()
