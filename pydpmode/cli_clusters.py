"""The command `pydpmode clusters FILE ...`."""

from __future__ import annotations

import argparse
from typing import Any

from .cli import (
    FILE_HELP,
    GUARANTEE,
    add_output_arguments,
    add_privacy_arguments,
    bandwidth_from,
    names,
    private_data,
    run_model,
    saved_surface,
)

_EXAMPLE = (
    """\
example:
  pydpmode clusters people.csv --columns height,weight --bounds height=140:210 --bounds weight=30:150 \\
      --k 3 --epsilon 1 --delta 1e-6 --plot clusters.png --json clusters.json

Bounds are PUBLIC: ranges that are known without looking at the file. There is no default epsilon.
FILE may also be a released surface (.json, .json.gz) that was saved before: then nothing is spent.

"""
    + GUARANTEE
)


def add_clusters(commands: Any) -> None:
    """Add the command to the command line."""
    clusters = commands.add_parser(
        "clusters",
        help="release the density of a few columns and cluster it",
        description="Release the density surface of 1 to 8 numeric columns once, and find its clusters.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    clusters.set_defaults(run=_run_clusters)
    clusters.add_argument("file", metavar="FILE", help=FILE_HELP)
    what = clusters.add_argument_group("what")
    what.add_argument(
        "--columns", metavar="A,B", help="columns to use, in order (all with bounds when omitted)"
    )
    what.add_argument(
        "--bounds", metavar="NAME=LOW:HIGH", action="append", default=[], help="public bounds, one per column"
    )
    what.add_argument(
        "--log", metavar="A,B", default="", help="columns on the natural-log scale (lower bound > 0)"
    )
    what.add_argument("--datetimes", metavar="A,B", default="", help="columns of a CSV file that hold dates")
    what.add_argument("--k", type=int, metavar="K", help="number of clusters (found when omitted)")
    what.add_argument(
        "--centres", choices=("fit", "modes"), default="fit", help="fitted clusters, or modes of the density"
    )
    what.add_argument(
        "--bandwidth", metavar="RULE|H|A=H,B=H", help="a rule or numbers; the default suits the centres"
    )
    what.add_argument(
        "--public-transform", metavar="TEXT", help="states which public transform made the columns"
    )
    add_privacy_arguments(clusters)
    add_output_arguments(clusters)


def _run_clusters(arguments: argparse.Namespace) -> None:
    from .models.modal_clustering import ModalClustering

    surface = saved_surface(arguments)
    given: Any = None if arguments.bandwidth is None else bandwidth_from(arguments.bandwidth)
    model = ModalClustering(
        private_data(arguments) if surface is None else surface,
        names(arguments.columns) or None,
        n_clusters=arguments.k,
        centres=arguments.centres,
        bandwidth=given,
        log=() if surface is not None else names(arguments.log),
        public_transform=arguments.public_transform,
    )
    run_model(model, (arguments.epsilon, arguments.delta), arguments)
