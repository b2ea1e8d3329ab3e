"""The house rules that a machine can check: who imports whom, where rows live, sizes, words, import time."""

from __future__ import annotations

import ast
import functools
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import pydpmode

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pydpmode"
MAX_LINES = 600

BASE = {"errors", "budget"}
BELOW_MODELS = BASE | {"numerics", "results", "privacy", "formula"}
FRONT = BELOW_MODELS | {"models", "datasets", "sklearn", "root"}

# Layer -> layers it may import. `root` is the package itself (`import pydpmode`).
ALLOWED_LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "budget": {"errors"},
    "datasets": BASE,
    "formula": BASE | {"numerics"},
    "numerics": BASE | {"numerics"},
    "results": BASE | {"numerics", "results"},
    "privacy": BASE | {"numerics", "results", "formula", "privacy"},
    "models": BELOW_MODELS | {"models"},
    "root": FRONT - {"root", "sklearn"},
    "sklearn": FRONT,
    "cli": FRONT | {"cli"},
    "r_bridge": FRONT | {"r_bridge"},
}

# Layer -> libraries it may import, at the top or inside a function.
ALLOWED_LIBRARIES: dict[str, set[str]] = {
    "errors": set(),
    "budget": set(),
    "datasets": {"numpy", "pandas"},
    "formula": {"numpy", "pandas", "formulaic"},
    "numerics": {"numpy", "scipy", "finufft", "numba", "cupy"},
    "results": {"numpy", "scipy", "pandas", "statsmodels", "matplotlib"},
    "privacy": {
        "numpy",
        "scipy",
        "pandas",
        "polars",
        "pyarrow",
        "dask",
        "opendp",
        "dp_accounting",
        "filelock",
        "tqdm",
    },
    "models": {"numpy", "scipy", "pandas", "tqdm"},
    "root": set(),
    "sklearn": {"numpy", "pandas", "sklearn"},
    "cli": {"numpy", "pandas", "pyarrow", "matplotlib", "tqdm"},
    "r_bridge": {"numpy", "pandas", "rpy2"},
}

# Slow to import and not needed to name a class: imported in the functions that use them. (SciPy's
# submodules cost .1 to .4 s each; pandas alone costs .3.)
HEAVY = {"cupy", "dask", "dp_accounting", "matplotlib", "numba", "opendp", "polars", "scipy", "sklearn"}
HEAVY |= {"statsmodels", "tqdm"}

# Modules that import by a name that is not written in the call: public names at first use, and the
# reader of a saved result by its kind. The names they hold are checked like imports.
IMPORT_BY_NAME = {"pydpmode/__init__.py", "pydpmode/results/base_results.py"}
MODULE_NAME = re.compile(r"(pydpmode(?:\.\w+)+)(?::[\w.]+)?")

# Paths of one machine, and notes on how the work was organised, have no place in the repository.
# Written in pieces, so that this file does not find itself.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"(?<![\w.~$}])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "Us" + "ers"]) + r")/",
            r"(?<![\w.])/t" + r"mp/",
            r"\bag" + r"ents?\b",
            r"\bsub-?ag" + r"ents?\b",
            r"\bchat" + r"bots?\b",
            r"\blanguage mo" + r"dels?\b",
            r"\bas" + r"sistants?\b",
            r"co-auth" + r"ored-by",
            r"generated w" + r"ith\b",
            r"pypi" + r"\.org|pythonhosted" + r"\.org|deb\.deb" + r"ian\.org|registry\.np" + r"mjs",
        ]
    ),
    re.IGNORECASE,
)


def python_files() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), *(ROOT / "r_bridge").rglob("*.py")])


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def repository_files() -> tuple[Path, ...]:
    """Return the files that are, or are about to be, under version control."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:  # an unpacked source archive
        paths = [p for p in ROOT.rglob("*") if not any(part.startswith(".venv") for part in p.parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def layer_of(module: str) -> str:
    """Return the layer of a dotted module name below the package ('' is the package itself)."""
    first = module.split(".")[0]
    return {"": "root", "__main__": "cli", "cli_clusters": "cli", "cli_regression": "cli"}.get(first, first)


def dotted(relative: str) -> tuple[str, ...]:
    """Return the package parts of the module at a path, the last one being the module."""
    parts = list(Path(relative).with_suffix("").parts)
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str, relative: str) -> Iterator[str]:
    """Yield the absolute dotted name of everything a module imports, also inside functions.

    `from package import name` yields `package.name`, whether `name` is a module or not; a string that
    names a module of the package ("pydpmode.results.results:load") counts as an import.
    """
    own = dotted(relative)
    package = own if relative.endswith("__init__.py") else own[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = MODULE_NAME.fullmatch(node.value)
            if named and layer_of(named[1].removeprefix("pydpmode.")) in ALLOWED_LAYERS:
                yield named[1]


def violations(source: str, relative: str) -> list[str]:
    """Return what one module imports, or how it imports, against the tables above."""
    own = dotted(relative)
    layer = "r_bridge" if own[0] == "r_bridge" else layer_of(".".join(own[1:2]))
    if layer not in ALLOWED_LAYERS:
        return [f"{relative}: layer {layer!r} is not in the table of import rules"]
    found = []
    for name in imported(source, relative):
        first, _, rest = name.partition(".")
        if first in ("pydpmode", "r_bridge"):
            target = "r_bridge" if first == "r_bridge" else layer_of(rest)
            # A public name such as pydpmode.Budget stands for the package itself.
            target = target if target in ALLOWED_LAYERS else "root"
            if target not in ALLOWED_LAYERS[layer]:
                found.append(f"{relative}: {layer} imports {name} ({target})")
        elif first not in sys.stdlib_module_names and first not in ALLOWED_LIBRARIES[layer]:
            found.append(f"{relative}: {layer} imports the library {first}")
    return found + dynamic_imports(source, relative, layer)


def dynamic_imports(source: str, relative: str, layer: str) -> list[str]:
    """Return calls that import by name something not allowed, or by a name not written in the call."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or relative in IMPORT_BY_NAME:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in ("import_module", "__import__"):
            continue
        library, dot, _ = written_start(node.args[0] if node.args else None).partition(".")
        if not (library in ALLOWED_LIBRARIES[layer] or (library == "pydpmode" and dot)):
            found.append(f"{relative}:{node.lineno}: import by name of {library or 'something hidden'}")
    return found


def written_start(argument: ast.expr | None) -> str:
    """Return a string argument, or the constant start of an f-string such as f"matplotlib.{name}"."""
    whole = isinstance(argument, ast.Constant)
    first = argument.values[0] if isinstance(argument, ast.JoinedStr) and argument.values else argument
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return ""
    return first.value if whole or "." in first.value else ""


@pytest.mark.parametrize("path", python_files(), ids=name_of)
def test_imports_follow_the_house_rules(path: Path) -> None:
    assert violations(path.read_text(encoding="utf-8"), name_of(path)) == []


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("pydpmode/numerics/a.py", "from ..privacy import noise"),
        ("pydpmode/numerics/a.py", "from .. import privacy"),
        ("pydpmode/numerics/a.py", "def f():\n    import pydpmode.privacy.noise"),
        ("pydpmode/numerics/a.py", "if TYPE_CHECKING:\n    from pydpmode.privacy.noise import draw"),
        ("pydpmode/numerics/a.py", "import opendp.prelude as dp"),
        ("pydpmode/numerics/a.py", "from importlib import import_module\nimport_module('..privacy', 'x')"),
        ("pydpmode/numerics/a.py", "import importlib\nimportlib.import_module(name)"),
        ("pydpmode/numerics/a.py", "import importlib\nimportlib.import_module('pydpmode.privacy')"),
        ("pydpmode/numerics/a.py", "import importlib\nimportlib.import_module('opendp.prelude')"),
        ("pydpmode/numerics/a.py", "import importlib\nimportlib.import_module(f'pydpmode{name}')"),
        ("pydpmode/results/base_results.py", "FAMILIES = {'x': 'pydpmode.models.density_modes:X.load'}"),
        ("pydpmode/results/a.py", "from pydpmode import PrivateData"),
        ("pydpmode/results/__init__.py", "from ..privacy.private_data import PrivateData"),
        ("pydpmode/privacy/a.py", "from ..models.density_modes import DensityModes"),
        ("pydpmode/privacy/a.py", "import pydpmode as dpm"),
        ("pydpmode/models/a.py", "def f():\n    from ..cli import main"),
        ("pydpmode/errors.py", "from .budget import Budget"),
        ("pydpmode/budget.py", "import numpy"),
        ("pydpmode/surprise.py", "import math"),
    ],
)
def test_the_import_check_finds_violations(relative: str, source: str) -> None:
    assert len(violations(source, relative)) == 1


def test_the_import_check_lets_the_rules_through() -> None:
    source = "import math\nimport numpy as np\nfrom ..errors import InvalidArgument\nfrom . import kernels\n"
    assert violations(source, "pydpmode/numerics/a.py") == []
    by_name = "import importlib\nimportlib.import_module(f'matplotlib.{name}')"
    assert violations(by_name, "pydpmode/results/a.py") == []
    assert violations("import pydpmode as dpm\nfrom .privacy.ledger import Ledger\n", "pydpmode/cli.py") == []


def test_private_rows_live_in_one_file() -> None:
    # A plain search of the text, so that getattr(x, "_rows") counts too.
    pattern = re.compile(r"(?<![A-Za-z0-9])_rows\b")
    holders = {name_of(path) for path in python_files() if pattern.search(path.read_text(encoding="utf-8"))}
    assert holders == {"pydpmode/privacy/private_data.py"}


def test_no_source_file_is_too_long() -> None:
    sources = [path for path in repository_files() if path.suffix in (".py", ".R")]
    lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert "pydpmode/datasets.py" in lines
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_no_machine_path_and_no_foreign_word() -> None:
    found = [
        f"{name_of(path)}:{number}: {match.group()}"
        for path in repository_files()
        for number, line in enumerate((text_of(path) or "").splitlines(), start=1)
        if (match := FORBIDDEN.search(line))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ('open("/wo' + 'rk/main/x")', True),
        ("see /t" + "mp/notes.md", True),
        ("Co-Auth" + "ored-By: someone", True),
        ("an ag" + "ent did this", True),
        ("rework/main and adhoc.tmp/x", False),
        ("the magenta agency", False),
    ],
)
def test_the_word_check_finds_what_it_should(line: str, caught: bool) -> None:
    assert bool(FORBIDDEN.search(line)) is caught


TESTED_EXTRAS = ("plot", "progress", "polars", "sklearn", "dask", "duckdb")


def pinned(python_version: str) -> dict[str, Version]:
    """Return library -> version of tests/lower-bounds.txt for one Python."""
    lines = (ROOT / "tests" / "lower-bounds.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    here = [
        pin for pin in pins if pin.marker is None or pin.marker.evaluate({"python_version": python_version})
    ]
    assert len({pin.name for pin in here}) == len(here), "a library is pinned twice"
    return {pin.name: Version(str(pin.specifier).removeprefix("==")) for pin in here}


def test_the_lowest_versions_are_the_ones_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = [*project["dependencies"], *(text for name in TESTED_EXTRAS for text in extras[name])]
    wanted = [Requirement(text) for text in stated]
    pins = pinned("3.11")
    lowest = {
        requirement.name: Version(next(s.version for s in requirement.specifier if s.operator == ">="))
        for requirement in wanted
    }
    assert {name: pins.get(name) for name in lowest} == lowest
    for name, version in pinned("3.13").items():
        assert version >= lowest.get(name, version)


def run_python(code: str) -> str:
    # From the repository's folder: the same code, installed or not.
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def seconds(statement: str) -> float:
    # Processor time: an import waits for nothing, and other processes must not count.
    return float(
        run_python(f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)")
    )


ALL_NAMES = "import pydpmode as dpm; [getattr(dpm, name) for name in dpm.__all__]"


# Importing the package is what 1.5 is asked of. Naming everything runs all of its modules, and with the
# oldest libraries, which import faster themselves, that is 1.5 already.
@pytest.mark.parametrize(
    ("statement", "most"),
    [("import pydpmode", 1.5), (ALL_NAMES, 2.0)],
    ids=["package", "every public name"],
)
def test_import_is_cheap(statement: str, most: float) -> None:
    # Of pairs taken in turns, so that a busy machine, or one whose clock changes, slows both alike.
    ratios = [seconds(statement) / seconds("import pandas, scipy") for _ in range(7)]
    assert statistics.median(ratios) <= most


def test_naming_every_class_loads_no_heavy_library() -> None:
    tops = run_python(f"import sys; {ALL_NAMES}; print(*{{m.partition('.')[0] for m in sys.modules}})")
    assert HEAVY.intersection(tops.split()) == set()


def test_public_names_are_listed_and_unknown_ones_refused() -> None:

    assert set(pydpmode.__all__) <= set(dir(pydpmode))
    with pytest.raises(AttributeError, match="has no attribute 'DensityMode'"):
        _ = pydpmode.DensityMode  # type: ignore[attr-defined]


def _module_file(folder: Path, module: str) -> Path | None:
    """Return the file of a module of this repository as a script in a folder would find it."""
    below = Path(*module.split("."))
    for base in (folder, ROOT):
        for file in (base / below.with_suffix(".py"), base / below / "__init__.py"):
            if file.exists():
                return file
    return None


def _names_of(file: Path) -> set[str]:
    """Return the names that a module has at its top level, and the modules beside it."""
    names = {path.stem for path in file.parent.iterdir()} if file.stem == "__init__" else set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


def missing_names(source: str, folder: Path) -> list[str]:
    """Return what a script imports from this repository that is not there."""
    missing = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
            continue
        file = _module_file(folder, node.module)
        if file is not None:
            known = _names_of(file) | (set(pydpmode.__all__) if node.module == "pydpmode" else set())
            missing += [f"{node.module}.{a.name}" for a in node.names if a.name not in known]
    return missing


@pytest.mark.parametrize("folder", ["benchmarks", "benchmarks/suite", "audits"])
def test_scripts_import_what_is_there(folder: str) -> None:
    """Scripts that need libraries of the benchmarks are not run here, so that a moved name is not noticed."""
    for path in sorted((ROOT / folder).glob("*.py")):
        assert missing_names(path.read_text(encoding="utf-8"), path.parent) == [], path.name
    gone = "from cluster_data import digits, whitener\nfrom pydpmode.errors import NotThere"
    assert missing_names(gone, ROOT / "benchmarks") == ["cluster_data.whitener", "pydpmode.errors.NotThere"]
