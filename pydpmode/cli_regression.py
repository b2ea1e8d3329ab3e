"""The command `pydpmode regression FILE FORMULA ...`."""

from __future__ import annotations

import argparse
from typing import Any

from .cli import (
    FILE_HELP,
    GUARANTEE,
    add_output_arguments,
    add_privacy_arguments,
    assignments,
    bandwidth_from,
    names,
    private_data,
    run_model,
    saved_surface,
)
from .errors import InvalidArgument

_EXAMPLE = (
    """\
example:
  pydpmode regression wages.parquet "log(wage) ~ age" --bounds age=15:90 --bounds wage=1000:300000 \\
      --resolution age=1 --epsilon 1 --delta 1e-6 --plot wages.png --json wages.json
  pydpmode regression pay.csv "pay ~ age" --by region --levels north,south ...

Bounds and levels are PUBLIC: known without looking at the file. There is no default epsilon.
FILE may also be a released surface (.json, .json.gz) that was saved before: then nothing is spent.

"""
    + GUARANTEE
)


def add_regression(commands: Any) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "regression",
        help="release a joint density and find the typical response at each predictor value",
        description="Release the joint density of a response and 1 to 3 numeric predictors once, and find "
        "the branches of conditional modes.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(run=_run_regression)
    command.add_argument("file", metavar="FILE", help=FILE_HELP)
    command.add_argument(
        "formula",
        metavar="FORMULA",
        help="such as 'log(wage) ~ age'; terms act row by row. Names with dots or spaces stand between back "
        "quotes, and the formula between single quotes: '`lab.value` ~ age'",
    )
    what = command.add_argument_group("what")
    what.add_argument(
        "--bounds",
        metavar="NAME=LOW:HIGH",
        action="append",
        default=[],
        help="public bounds of the original columns; once per column",
    )
    what.add_argument("--by", metavar="COLUMN", help="one regression per declared level of this column")
    what.add_argument("--levels", metavar="A,B,...", help="the public levels of --by")
    what.add_argument("--datetimes", metavar="A,B", default="", help="columns of a CSV file that hold dates")
    what.add_argument(
        "--kind", choices=("branches", "linear"), default="branches", help="curves, or one modal line"
    )
    what.add_argument(
        "--bandwidth", metavar="RULE|H|A=H,B=H", default="regression", help="regression, or numbers"
    )
    what.add_argument(
        "--resolution",
        metavar="A=STEP,...",
        default="",
        help="public recording steps: a floor on the bandwidth",
    )
    what.add_argument("--order", type=int, choices=(2, 4), default=2, help="order of the kernel")
    add_privacy_arguments(command)
    add_output_arguments(command)


def _run_regression(arguments: argparse.Namespace) -> None:
    from .models.modal_regression import ModalRegression

    if arguments.by is not None and arguments.surface is not None:
        raise InvalidArgument("--surface holds one surface; with --by use --json, which holds all of them")
    surface = saved_surface(arguments)
    given: Any = bandwidth_from(arguments.bandwidth)
    steps: Any = assignments(arguments.resolution, "--resolution") or None
    model = ModalRegression.from_formula(
        arguments.formula,
        private_data(arguments) if surface is None else surface,
        by=arguments.by,
        levels=None if arguments.levels is None else _levels(arguments.levels),
        bandwidth=given,
        resolution=steps,
        order=arguments.order,
        kind=arguments.kind,
    )
    run_model(model, (arguments.epsilon, arguments.delta), arguments)


def _levels(text: str) -> list[str] | list[float]:
    """Return levels as numbers when all of them are, as texts otherwise."""
    found = names(text)
    try:
        return [float(part) for part in found]
    except ValueError:
        return found
