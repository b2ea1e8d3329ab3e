"""The command line: `pydpmode modes FILE ...`, `pydpmode clusters FILE ...`, `pydpmode ledger FILE`, ...

Exit codes: 0 done; 2 wrong arguments or input; 3 the budget does not hold the release; 4 the ledger
file cannot be used; 1 anything else; 130 interrupted. No message contains a value from a row.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .budget import Budget
from .errors import BudgetExceeded, InvalidArgument, InvalidBudget, LedgerError, PydpmodeError, ReadingFailed

if TYPE_CHECKING:
    from .results.clustering_results import ClusteringResults
    from .results.results import DensityModesResults

EXIT_INPUT, EXIT_BUDGET, EXIT_LEDGER, EXIT_OTHER, EXIT_INTERRUPTED = 2, 3, 4, 1, 130

FILE_HELP = "CSV (.csv, .csv.gz), Parquet, a folder of Parquet files, or a saved surface (.json, .json.gz)"
GUARANTEE = """\
Guarantee: given the public bounds, all that is written is (epsilon, delta)-differentially private for
replacing one row, or as --adjacency and --person say; with --seed it is a simulation, and NOT private.
"""
_MODES_EXAMPLE = (
    """\
example:
  pydpmode modes wages.parquet --columns age,wage --bounds age=15:90 --bounds wage=1000:300000 \\
      --log wage --epsilon 1 --delta 1e-6 --plot wages.png --json wages.json

Bounds are PUBLIC: ranges that are known without looking at the file. There is no default epsilon.
FILE may also be a released surface (.json, .json.gz) that was saved before: then nothing is spent.

"""
    + GUARANTEE
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _show_warning
            arguments.run(arguments)
    except BudgetExceeded as error:
        return _fail(error, EXIT_BUDGET)
    except LedgerError as error:
        return _fail(error, EXIT_LEDGER)
    except ReadingFailed as error:
        return _fail(error, EXIT_OTHER)
    except BrokenPipeError:
        # The reader of the output has gone, as `head` does; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OTHER
    except (PydpmodeError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
        return _fail(error, EXIT_INPUT)
    except KeyboardInterrupt:
        print("pydpmode: interrupted; a release that was charged stays charged", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        # The text of an unexpected error could quote a cell, so only its kind is shown.
        print(f"pydpmode: internal error ({type(error).__name__}); please report it", file=sys.stderr)
        return EXIT_OTHER
    return 0


def _fail(error: Exception, code: int) -> int:
    text = (
        error.strerror + f": {error.filename}"
        if isinstance(error, OSError) and error.strerror
        else str(error)
    )
    print(f"pydpmode: error: {text}", file=sys.stderr)
    return code


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    # Warnings of other libraries could quote values: only this package's own are shown.
    if category.__module__.startswith("pydpmode"):
        print(f"pydpmode: warning: {message}", file=sys.stderr)


# -- arguments -------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    from . import __version__
    from .cli_clusters import add_clusters
    from .cli_regression import add_regression

    parser = argparse.ArgumentParser(
        prog="pydpmode", description="Modes of a density under differential privacy.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"pydpmode {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_modes(commands)
    add_clusters(commands)
    add_regression(commands)
    _add_ledger(commands)
    _add_wages(commands)
    return parser


def _add_modes(commands: Any) -> None:
    modes = commands.add_parser(
        "modes",
        help="release the density of a few columns and find its modes",
        description="Release the density surface of 1 to 8 numeric columns once, and find its modes.",
        epilog=_MODES_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    modes.set_defaults(run=_run_modes)
    modes.add_argument("file", metavar="FILE", help=FILE_HELP)
    what = modes.add_argument_group("what")
    what.add_argument(
        "--columns", metavar="A,B", help="columns to use, in order (all with bounds when omitted)"
    )
    what.add_argument(
        "--bounds",
        metavar="NAME=LOW:HIGH",
        action="append",
        default=[],
        help="public bounds; once per column (NAME=LOW..HIGH for times with colons)",
    )
    what.add_argument(
        "--log", metavar="A,B", default="", help="columns on the natural-log scale (lower bound > 0)"
    )
    what.add_argument("--datetimes", metavar="A,B", default="", help="columns of a CSV file that hold dates")
    what.add_argument(
        "--n-modes", type=int, metavar="K", help="number of modes (found by significance when omitted)"
    )
    what.add_argument(
        "--bandwidth",
        metavar="RULE|H|A=H,B=H",
        default="ladder",
        help="ladder (default), private, reference, paper, or numbers",
    )
    what.add_argument(
        "--resolution",
        metavar="A=STEP,...",
        default="",
        help="public recording steps: a floor on the bandwidth",
    )
    what.add_argument(
        "--mechanism",
        choices=("surface", "grams"),
        default="surface",
        help="release one density surface, or run the published DP-GRAMS",
    )
    what.add_argument(
        "--grams",
        metavar="NAME=VALUE,...",
        default="",
        help="options of --mechanism grams, such as T=12,k=30,noise=independent",
    )
    what.add_argument("--order", type=int, choices=(2, 4), default=2, help="order of the kernel")
    add_privacy_arguments(modes)
    add_output_arguments(modes)


def add_privacy_arguments(command: Any) -> None:
    """Add the options that every releasing command takes."""
    privacy = command.add_argument_group("privacy")
    privacy.add_argument(
        "--epsilon", type=_number, metavar="E", help="privacy loss of this release; no default"
    )
    privacy.add_argument("--delta", type=_number, metavar="D", help="well below 1/n; no default")
    privacy.add_argument(
        "--ledger", metavar="FILE", help="ledger file, shared by all releases from these rows"
    )
    privacy.add_argument(
        "--budget", type=_number, metavar="E", help="total epsilon of a new ledger (--epsilon when omitted)"
    )
    privacy.add_argument("--label", help="label of this release in the ledger")
    privacy.add_argument(
        "--adjacency",
        choices=("replace", "add_remove"),
        default="replace",
        help="which tables are neighbours",
    )
    privacy.add_argument(
        "--n-guess", type=int, metavar="N", help="public guess of the number of rows (add_remove)"
    )
    privacy.add_argument(
        "--n-max", type=int, metavar="N", help="public ceiling of the number of rows (add_remove)"
    )
    privacy.add_argument(
        "--person", metavar="COLUMN", help="protect persons: rows with the same value here are one vote"
    )
    privacy.add_argument("--weights", metavar="COLUMN", help="survey weights; needs --max-weight")
    privacy.add_argument("--max-weight", type=_number, metavar="W", help="public ceiling of the weights")
    privacy.add_argument(
        "--outside",
        choices=("clip", "ignore"),
        default="clip",
        help="what to do with values outside the bounds",
    )
    privacy.add_argument("--seed", type=int, help="reproducible noise, for tests only: NOT private")


def add_output_arguments(command: Any) -> None:
    """Add the options that say what to write."""
    output = command.add_argument_group("output")
    output.add_argument(
        "--preview", action="store_true", help="tell cost and noise; read no row, charge nothing"
    )
    output.add_argument(
        "--format", choices=("text", "html", "latex", "csv"), default="text", help="form of the summary"
    )
    output.add_argument("--plot", metavar="FILE", help="write a picture (.png, .pdf, .svg)")
    output.add_argument("--json", metavar="FILE", help="write the result with its surface")
    output.add_argument("--surface", metavar="FILE", help="write the released surface (.json or .json.gz)")
    output.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="where the sums of a surface are computed (cuda: CuPy and a GPU)",
    )
    output.add_argument("--no-progress", action="store_true", help="never show a progress bar")


def _add_ledger(commands: Any) -> None:
    ledger = commands.add_parser(
        "ledger",
        help="show a ledger file",
        description="Show a ledger file: the budget, its releases with what each has cost, and what is left. "
        "No table is read and nothing is spent.",
        allow_abbrev=False,
    )
    ledger.add_argument("file", metavar="FILE", help="ledger that a release with --ledger FILE has written")
    ledger.set_defaults(run=_run_ledger)


def _add_wages(commands: Any) -> None:
    wages = commands.add_parser(
        "wages",
        help="print the path of the packaged wage table",
        description="Print the path of the packaged wage table, a Parquet file to try the commands on.",
        allow_abbrev=False,
    )
    wages.set_defaults(run=_run_wages)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def names(text: str | None) -> list[str]:
    """Return the parts of a comma-separated list."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def parse_bounds(entries: Sequence[str]) -> dict[str, tuple[float | str, float | str]]:
    """Return bounds from `NAME=LOW:HIGH` entries (`NAME=LOW..HIGH` for times with colons).

    Raises
    ------
    InvalidArgument
        On an entry of another form, or a column given twice.
    """
    bounds: dict[str, tuple[float | str, float | str]] = {}
    for entry in entries:
        name, equals, ends = entry.rpartition("=")
        pair = ends.split("..") if ".." in ends else ends.split(":")
        if not equals or not name or len(pair) != 2 or not all(p.strip() for p in pair):
            raise InvalidArgument(
                f"--bounds {entry!r} is not NAME=LOW:HIGH; write for example --bounds age=15:90, "
                "or NAME=LOW..HIGH for times with colons"
            )
        if name in bounds:
            raise InvalidArgument(f"--bounds names {name!r} twice")
        bounds[name] = (_end(pair[0]), _end(pair[1]))
    return bounds


def _end(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def assignments(text: str, option: str) -> dict[str, float | str]:
    """Return `NAME=NUMBER,...` as a mapping."""
    out: dict[str, float | str] = {}
    for part in names(text):
        name, equals, value = part.rpartition("=")
        try:
            out[name] = _length(value)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InvalidArgument(
                f"{option} {text!r} is not NAME=NUMBER,...; write for example {option} age=1"
            )
    return out


def _length(text: str) -> float | str:
    """Return a number, or the text of a duration such as 60d."""
    try:
        return float(text)
    except ValueError:
        import pandas as pd

        pd.Timedelta(text)
        return text


def bandwidth_from(text: str) -> str | float | dict[str, float | str]:
    """Return a rule, a number, or numbers by column."""
    if "=" in text:
        return assignments(text, "--bandwidth")
    try:
        return float(text)
    except ValueError:
        return text


# -- commands --------------------------------------------------------------------------------------


def _run_modes(arguments: argparse.Namespace) -> None:
    run_model(*_model(arguments), arguments)


def run_model(model: Any, spend: tuple[Any, ...], arguments: argparse.Namespace) -> None:
    """Preview or fit a model, and write what is asked for."""
    if arguments.preview:
        print(model.preview(*spend))
        return
    check_outputs(arguments)
    try:
        result = model.fit(*spend, label=arguments.label, seed=arguments.seed)
    finally:
        # What has been paid for is kept, even when the search on it fails or is interrupted.
        if arguments.surface is not None and model.released is not None:
            model.released.save(arguments.surface)
    write(result, arguments)


def _model(arguments: argparse.Namespace) -> tuple[Any, tuple[Any, ...]]:
    """Return the model and the (epsilon, delta) to fit it with; empty on a saved surface."""
    from .models.density_modes import DensityModes

    options = {"n_modes": arguments.n_modes, "bandwidth": bandwidth_from(arguments.bandwidth)}
    columns = names(arguments.columns) or None
    surface = saved_surface(arguments)
    if surface is not None:
        return DensityModes(surface, columns, **options), (arguments.epsilon, arguments.delta)
    study = private_data(arguments)
    options.update(
        order=arguments.order, resolution=assignments(arguments.resolution, "--resolution") or None
    )
    options.update(mechanism=arguments.mechanism, grams=_grams_options(arguments.grams))
    model = DensityModes(study, columns, log=names(arguments.log), **options)
    return model, (arguments.epsilon, arguments.delta)


def saved_surface(arguments: argparse.Namespace) -> Any:
    """Return the saved surface that FILE is, or None for a table."""
    if not str(arguments.file).endswith((".json", ".json.gz")):
        return None
    from .results.released_surface import load_surface

    if arguments.surface is not None or arguments.ledger is not None:
        raise InvalidArgument("a saved surface is read again at no cost: leave out --surface and --ledger")
    return load_surface(arguments.file)


def private_data(arguments: argparse.Namespace) -> Any:
    """Return the private table that the options describe, with its ledger."""
    from .privacy.private_data import PrivateData

    if arguments.epsilon is None:
        raise InvalidBudget("--epsilon is missing and has no default; common choices are 0.1 to 5")
    if arguments.delta is None:
        raise InvalidBudget(
            "--delta is missing and has no default; give one well below 1/n, such as --delta 1e-6"
        )
    if arguments.budget is not None and arguments.ledger is None:
        raise InvalidArgument("--budget is the total of a ledger; give --ledger FILE as well")
    total = arguments.budget if arguments.budget is not None else arguments.epsilon
    return PrivateData(
        arguments.file,
        bounds=parse_bounds(arguments.bounds),
        budget=_ledger_budget(arguments.ledger, Budget(total, arguments.delta), arguments.budget is not None),
        ledger=arguments.ledger,
        adjacency=arguments.adjacency,
        unit="row" if arguments.person is None else "person",
        person=arguments.person,
        weights=arguments.weights,
        max_weight=arguments.max_weight,
        outside=arguments.outside,
        n_guess=arguments.n_guess,
        n_max=arguments.n_max,
        datetimes=names(arguments.datetimes),
        progress=False if arguments.no_progress else None,
        device=arguments.device,
    )


def _grams_options(text: str) -> Any:
    """Return the options of DP-GRAMS that `NAME=VALUE,...` states; None when there are none."""
    from .privacy.grams_options import GramsOptions

    given: dict[str, Any] = {}
    known = [name for name in GramsOptions.__dataclass_fields__ if name != "candidates"]
    for part in names(text):
        name, equals, value = part.partition("=")
        if not equals or name not in known:
            raise InvalidArgument(f"--grams {part!r} is not NAME=VALUE with a name out of {known}")
        given[name] = _end(value)
    return GramsOptions(**given) if given else None


def _ledger_budget(path: str | None, wanted: Budget, stated: bool) -> Budget:
    """Return the budget of an existing ledger file when none is stated, so that it need not be repeated."""
    from .privacy.ledger import read_budget

    if path is None or stated or not Path(path).exists():
        return wanted
    return read_budget(path)


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written before any budget is spent."""
    if arguments.surface is not None and getattr(arguments, "mechanism", None) == "grams":
        raise InvalidArgument("--surface: --mechanism grams releases no surface; use --json")
    for target in (arguments.plot, arguments.json, arguments.surface):
        if target is not None:
            _check_target(target)
    if arguments.plot is not None:
        from .results.plot_files import check_plot_target

        check_plot_target(arguments.plot)


def _check_target(target: str) -> None:
    if "\0" in target:
        raise InvalidArgument(f"cannot write {target!r}: the name holds a null character")
    path = Path(target).absolute()
    if not path.parent.is_dir():
        raise InvalidArgument(f"cannot write {target}: its folder does not exist")
    if not target or path.is_dir():
        raise InvalidArgument(f"cannot write {target!r}: it names a folder; give the name of a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidArgument(f"cannot write {target}: this user may not")


def write(result: DensityModesResults | ClusteringResults, arguments: argparse.Namespace) -> None:
    """Print the summary and write the files that are asked for."""
    summary = result.summary()
    print(
        {"text": summary.as_text, "html": summary.as_html, "latex": summary.as_latex, "csv": summary.as_csv}[
            arguments.format
        ]()
    )
    if arguments.json is not None:
        result.save(arguments.json)
    if arguments.plot is not None:
        from .results.plot_files import save_plot

        save_plot(result, arguments.plot)


def _run_ledger(arguments: argparse.Namespace) -> None:
    from .privacy.ledger import Ledger, read_header

    budget, adjacency, unit = read_header(arguments.file)
    print(Ledger.open(arguments.file, budget, adjacency, unit))


def _run_wages(arguments: argparse.Namespace) -> None:
    from .datasets import wages_path

    print(wages_path())


def run() -> NoReturn:
    """Exit with the code of `main`."""
    sys.exit(main())


if __name__ == "__main__":
    run()
