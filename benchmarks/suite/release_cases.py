"""Releases in one to three columns: from an array, with weights, and from streams and files."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from pydpmode import Budget, PrivateData, RowStream
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.feature_sums import FAST_TOLERANCE
from pydpmode.privacy.surface_release import ReleasePlan

from .cases import OURS, SEED, Case, Peer, Run, Work

LOW, HIGH = -8.0, 8.0
BANDWIDTHS = {1: 0.3, 2: 0.6, 3: 1.6}
BATCH = 2**17
BUDGET = Budget(1e6, 1e-3)
SPENT = {"epsilon": 1.0, "delta": 1e-9}
FINUFFT, HISTOGRAM = "FINUFFT alone", "numpy.histogramdd"


def rows_of(n: int, dimension: int) -> np.ndarray:
    """Return Gaussian rows, all inside the box."""
    rows = np.random.default_rng(SEED).normal(scale=1.5, size=(n, dimension))
    return np.clip(rows, LOW, HIGH)


def names(dimension: int) -> tuple[str, ...]:
    """Return the names of the columns."""
    return tuple(f"x{i + 1}" for i in range(dimension))


def lattice(dimension: int) -> LatticeDesign:
    """Return the design of the release."""
    box = ([LOW] * dimension, [HIGH] * dimension, [BANDWIDTHS[dimension]] * dimension)
    return LatticeDesign(names(dimension), *box)


def opened(data: object, dimension: int, **options: Any) -> PrivateData:
    """Return the rows behind their door, with a budget that lasts."""
    bounds = {name: (LOW, HIGH) for name in names(dimension)}
    return PrivateData(data, bounds=bounds, budget=BUDGET, progress=False, **options)


def released(study: PrivateData, design: LatticeDesign) -> Any:
    """Return one release: charge, checks, one pass, exact noise."""
    return study.release_surface(design, [study.coordinate(c) for c in design.columns], **SPENT)


def transform(
    design: LatticeDesign, rows: np.ndarray, strengths: np.ndarray | None = None, tolerance: float = 0.0
) -> Run:
    """Return FINUFFT's own transform of the same lattice at the same tolerance, one thread, angles ready."""
    import finufft

    scale = 2 * np.pi / (design.sides * design.bandwidth)
    angles = [np.ascontiguousarray(a) for a in ((rows - LOW) * scale).T]
    shape = tuple(int(2 * j + 1) for j in design.half_sizes)
    call = (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1)[design.dimension - 1]
    weights = np.ones(len(rows)) if strengths is None else strengths
    options = {"isign": 1, "eps": tolerance or FAST_TOLERANCE, "nthreads": 1}
    modes = shape[0] if design.dimension == 1 else shape
    return functools.partial(call, *angles, weights.astype(complex), modes, **options)


def histogram(design: LatticeDesign, rows: np.ndarray) -> Run:
    """Return a pass that only counts: as many cells as the lattice has frequencies."""
    cells = [int(2 * j + 1) for j in design.half_sizes]
    return lambda: np.histogramdd(rows, bins=cells, range=[(LOW, HIGH)] * design.dimension)[0]


def check_release(design: LatticeDesign, total: float, results: Mapping[str, Any]) -> None:
    """Check that the release is the peer's sums plus noise of the stated size, and that none lost a row."""
    surface, full = results[OURS], results[FINUFFT]
    half = np.ascontiguousarray(full[int(design.half_sizes[0]) :]).reshape(-1)[design.pair_index]
    weighted = np.sqrt(design.pair_weights) * half
    exact = np.concatenate([[np.sqrt(design.zero_weight) * total], weighted.real, weighted.imag])
    noise = (surface.vector - exact) / surface.privacy.noise_scale
    assert abs(np.sqrt(np.mean(noise**2)) - 1) < 6 / np.sqrt(2 * noise.size)
    if HISTOGRAM in results:
        assert results[HISTOGRAM].sum() == total


def from_array(dimension: int, n: int, _: Path) -> Work:
    """Return a release from an array in memory."""
    rows, design = rows_of(n, dimension), lattice(dimension)
    study = opened(rows, dimension)
    runs = {
        OURS: lambda: released(study, design),
        FINUFFT: transform(design, rows),
        HISTOGRAM: histogram(design, rows),
    }
    return Work(runs, functools.partial(check_release, design, n))


def with_weights(n: int, _: Path) -> Work:
    """Return a release of weighted rows in two columns."""
    import pandas as pd

    rows, design = rows_of(n, 2), lattice(2)
    weights = np.random.default_rng(SEED + 1).uniform(size=n)
    table = pd.DataFrame(rows, columns=list(names(2))).assign(weight=weights)
    study = opened(table, 2, weights="weight", max_weight=1.0)
    runs = {OURS: lambda: released(study, design), FINUFFT: transform(design, rows, weights)}
    return Work(runs, functools.partial(check_release, design, float(weights.sum())))


def batches_of(rows: np.ndarray) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """Return rows as record batches."""
    table = pa.table({name: column.copy() for name, column in zip(names(rows.shape[1]), rows.T, strict=True)})
    return table.schema, table.to_batches(max_chunksize=BATCH)


def tolerance_of(study: PrivateData, design: LatticeDesign) -> float:
    """Return the tolerance that a release of these rows uses: public."""
    plan: ReleasePlan = study.plan(design, **SPENT)
    return plan.tolerance


def from_batches(n: int, _: Path) -> Work:
    """Return a release from a stream of record batches, and FINUFFT batch after batch."""
    rows, design = rows_of(n, 2), lattice(2)
    schema, batches = batches_of(rows)
    stream = RowStream(lambda: pa.RecordBatchReader.from_batches(schema, batches), n_rows=n)
    study = opened(stream, 2)
    tolerance = tolerance_of(study, design)
    parts = [transform(design, rows[i : i + BATCH], tolerance=tolerance) for i in range(0, n, BATCH)]
    runs = {OURS: lambda: released(study, design), FINUFFT: lambda: sum(part() for part in parts)}
    return Work(runs, functools.partial(check_release, design, n))


def from_parquet(n: int, folder: Path) -> Work:
    """Return a release from a Parquet file, and reading it whole before FINUFFT."""
    rows, design = rows_of(n, 2), lattice(2)
    path = folder / "rows.parquet"
    pa.parquet.write_table(pa.Table.from_batches(batches_of(rows)[1]), path)
    study = opened(path, 2)
    tolerance = tolerance_of(study, design)

    def peer() -> Any:
        table = pa.parquet.read_table(path)
        columns = np.stack([column.to_numpy() for column in table.columns], axis=1)
        return transform(design, np.clip(columns, LOW, HIGH), tolerance=tolerance)()

    runs = {OURS: lambda: released(study, design), FINUFFT: peer}
    return Work(runs, functools.partial(check_release, design, n))


CASES = (
    *(
        Case(
            f"release, {d} column{'s' * (d > 1)}",
            1_000_000,
            2000,
            functools.partial(from_array, d),
            (Peer(FINUFFT, most), Peer(HISTOGRAM, cells)),
        )
        for d, most, cells in ((1, 2.5, 3.0), (2, 2.5, 4.0), (3, 3.0, 13.0))
    ),
    Case("release, 2 columns, weights", 1_000_000, 2000, with_weights, (Peer(FINUFFT, 2.5),)),
    Case("release, 2 columns, record batches", 1_000_000, 2000, from_batches, (Peer(FINUFFT, 2.5),)),
    Case("release, 2 columns, Parquet file", 1_000_000, 2000, from_parquet, (Peer(FINUFFT, 2.5),)),
)
