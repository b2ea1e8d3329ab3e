"""Hostile command lines: nearly right ones, with awkward names, numbers, files and options."""

from __future__ import annotations

import contextlib
import io
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydpmode.cli import EXIT_OTHER, main
from pydpmode.errors import LedgerError

from .formula_fuzzing import formula
from .fuzzing import Tally, attempt

_TABLE = b"a,b,w,who\n" + b"".join(b"%d,%d.5,1,%d\n" % (i % 7, i % 5, i // 2) for i in range(40))
_NUMBERS = ("1", "0.5", "1e-6", "0", "-1", "nan", "inf", "1e999", "abc", "", "1e-400", "\uff10", "9" * 400)
_NAMES = ("a", "b", "a,b", "zz", "", ",", "a,a", "a b", "ü", "\x00", "a=1", "-", "'", "a" * 3000)
_BOUNDS = (
    "a=0:7", "b=0:6", "a=7:0", "a=0", "a", "=0:1", "a=:", "a=nan:1", "a=0:inf", "zz=0:1", "a=0..7", "a=0:1:2",
    "a=1e308:-1e308", "a=-1e308:1e308", "b=2020-01-01:2021-01-01", "a=1:7",
)  # fmt: skip
_FILES = ("t.csv", "t.csv", "t.csv", "none.csv", "t.parquet", ".", "", "t.txt", "x.json", "bad.json", "\x00")
_FORMULAS = ("b ~ a", "log(b) ~ a", "a ~ b", "b ~ I(a + 1)", "b ~ zz", "b ~ a + who", "a ~ a", "", "~")
_COMMON: dict[str, Sequence[str]] = {
    "--bounds": _BOUNDS,
    "--datetimes": ("a", "b", "zz", ""),
    "--bandwidth": (
        "reference",
        "paper",
        "ladder",
        "private",
        "1",
        "0",
        "-1",
        "nan",
        "a=1",
        "a=",
        "a=60d",
        "x",
    ),
    "--epsilon": _NUMBERS,
    "--delta": _NUMBERS,
    "--ledger": ("l.jsonl", "no/such/l.jsonl", ".", "bad.jsonl"),
    "--budget": _NUMBERS,
    "--label": ("first", "", "x" * 500, "\x00", "é"),
    "--adjacency": ("replace", "add_remove", "both"),
    "--n-guess": ("100", "0", "-1", "x", "9" * 30),
    "--n-max": ("100", "0", "9" * 30),
    "--person": ("who", "zz", "a"),
    "--weights": ("w", "zz", "a"),
    "--max-weight": _NUMBERS,
    "--outside": ("clip", "ignore", "drop"),
    "--format": ("text", "html", "latex", "csv", "pdf"),
    "--plot": ("p.svg", "no/such/p.png", "p.xyz", ""),
    "--json": ("r.json", "no/such/r.json", ""),
    "--surface": ("s.json", "no/such/s.json"),
}
_OWN: dict[str, dict[str, Sequence[str]]] = {
    "modes": {
        "--columns": _NAMES,
        "--log": ("a", "b", "zz", ""),
        "--n-modes": ("1", "2", "0", "-1", "x", "1000000"),
        "--resolution": ("a=1", "a=0", "a=-1", "zz=1", "a", "a=nan", "a=1e300"),
        "--mechanism": ("surface", "grams", "other"),
        "--grams": (
            "T=2,k=2",
            "T=0",
            "k=1e9",
            "noise=independent",
            "eta=nan",
            "x=1",
            "T",
            "eps_init=2",
            "m=5",
        ),
        "--order": ("2", "4", "6", "x"),
    },
    "regression": {
        "--by": ("who", "a", "zz", ""),
        "--levels": ("0,1,2", "1", "", ",", "1,1", "x" * 500),
        "--kind": ("branches", "linear", "other"),
        "--resolution": ("a=1", "a=0", "zz=1", "a=nan"),
        "--order": ("2", "4", "6", "x"),
    },
    "clusters": {
        "--columns": _NAMES,
        "--log": ("a", "b", "zz", ""),
        "--k": ("1", "2", "0", "-1", "x", "1000000"),
        "--centres": ("fit", "modes", "other"),
        "--public-transform": ("", "scaled by ten", "\x00", "x" * 5000),
    },
}
_FLAGS = ("--preview", "--no-progress", "--help", "--version", "--nonsense", "extra")


def command(r: random.Random) -> list[str]:
    """Return arguments for the command line: often nearly right, so that they get far."""
    if r.random() < 0.05:
        return [r.choice((*_OWN, "ledger", "wages", "", "x")), *r.choices(_FILES, k=r.randrange(3))]
    what = r.choice(list(_OWN))
    given = [what, r.choice(_FILES) if r.random() < 0.3 else "t.csv"]
    if what == "regression":
        given.append(r.choice(_FORMULAS) if r.random() < 0.6 else formula(r))
    if r.random() < 0.85:
        given += ["--bounds", "a=0:7", "--epsilon", "1", "--delta", "1e-3"]
        given += ["--bounds", "b=0.1:6"] * (what == "regression")
    options = _COMMON | _OWN[what]
    for name in r.sample(list(options), r.choice((0, 1, 1, 2, 2, 4))):
        given += [name, r.choice(options[name])]
    given += r.sample(_FLAGS, r.choice((0, 0, 0, 1)))
    if r.random() < 0.5:
        given.append("--preview")
    if "--ledger" not in given and r.random() < 0.5:
        given += ["--ledger", "l.jsonl"]
    return given


def run_or_refuse(arguments: list[str], folder: Path) -> bool:
    """Run a command; return False when it was refused, and check that nothing was charged then."""
    for name in ("l.jsonl", "l.jsonl.head"):
        (folder / name).unlink(missing_ok=True)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main([*arguments, *(["--seed", "1"] if arguments[0] in _OWN else [])])
        except SystemExit as stop:
            code = int(stop.code or 0)
    if code == EXIT_OTHER:
        raise RuntimeError(f"internal error for {arguments}: {err.getvalue()[:200]}")
    if code == 0:
        return True
    if not err.getvalue().strip() or "Traceback" in err.getvalue() + out.getvalue():
        raise RuntimeError(f"refused without a message: {arguments}")
    if _charged(folder / "l.jsonl"):
        raise RuntimeError(f"refused after a charge: {arguments}: {err.getvalue()[:200]}")
    return False


def _charged(path: Path) -> bool:
    if not path.exists():
        return False
    try:
        return '"kind":"charge"' in path.read_text()
    except (OSError, LedgerError):
        return False


def fuzz_commands(inputs: int) -> Tally:
    """Run command lines, in a folder of their own."""
    tally = Tally("command lines")
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "t.csv").write_bytes(_TABLE)
        (folder / "bad.json").write_text('{"kind": 3')
        (folder / "bad.jsonl").write_text("not a ledger\n")
        os.chdir(folder)
        try:
            for seed in range(inputs):
                arguments = command(random.Random(seed))
                attempt(tally, seed, lambda a=arguments: run_or_refuse(a, folder))  # type: ignore[misc]
        finally:
            os.chdir(before)
    return tally
