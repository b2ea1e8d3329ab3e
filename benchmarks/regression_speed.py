"""Time of a whole modal regression on the packaged wages: release, noise, branches, errors.

    python benchmarks/regression_speed.py            # half a minute
    python benchmarks/regression_speed.py --quick    # three fits

The first fit of a process loads the noise library and is not counted.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from pydpmode import ModalRegression, datasets


def main() -> None:
    """Fit a few times and print the median."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three fits")
    repeats = 3 if parser.parse_args().quick else 20
    wages = datasets.wages()
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        model = ModalRegression.from_formula(
            "log(wage) ~ age",
            wages,
            bounds={"age": (15, 90), "wage": (1000, 300_000)},
            resolution={"age": 1},
        )
        model.fit(epsilon=1.0, delta=1e-6)
        times.append(time.perf_counter() - start)
    fits = np.array(times[1:])
    print(
        f"{len(wages):,} rows: median {np.median(fits):.2f} s, longest {fits.max():.2f} s of {repeats} fits"
    )


if __name__ == "__main__":
    main()
