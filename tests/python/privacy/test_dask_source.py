"""Dask tables: exact sums on the workers, whatever happens to them, and one addition of noise here."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster

import pydpmode as dpm
from pydpmode.errors import InvalidArgument, LowSignal, NonNumericColumn, PydpmodeError, UnsupportedSource
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy import dask_source, private_data
from pydpmode.privacy.dask_source import _fingerprint
from pydpmode.privacy.features import ZERO_WEIGHT
from pydpmode.privacy.private_data import PrivateData
from pydpmode.privacy.sources import open_source

BUDGET = dpm.Budget(5.0, 1e-5)
BOUNDS = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
# Partitions of whole blocks: the same blocks as in memory, hence the same bits.
N, PARTITIONS, BLOCK = 1024, 8, 64


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_data, "BLOCK_ROWS", BLOCK)


def frame(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    a = rng.uniform(-0.1, 1.1, n)
    a[::50] = np.nan
    who = pd.array([f"p{i % 41}" for i in range(n)], dtype="string[pyarrow]")
    return pd.DataFrame({"a": a, "who": who, "b": rng.uniform(size=n), "w": np.arange(n) % 3})


def parts() -> list[pd.DataFrame]:
    whole, size = frame(), N // PARTITIONS
    return [whole.iloc[i : i + size] for i in range(0, N, size)]


def from_parts(chosen: list[Any], meta: pd.DataFrame | None = None) -> Any:
    return dd.from_delayed(
        [dask.delayed(part) for part in chosen], meta=frame(0) if meta is None else meta, verify_meta=False
    )


def exact_sum(data: Any, names: tuple[str, ...] = ("a", "b"), **knobs: Any) -> tuple[np.ndarray, Any]:
    columns = knobs.pop("columns", None)
    bounds = {name: (0.0, 1.0) for name in names}
    study = PrivateData(data, bounds=bounds, budget=BUDGET, columns=columns, **knobs)
    coordinates = [study.coordinate(name) for name in names]
    lower, upper = study.box(coordinates)
    design = LatticeDesign(names, lower, upper, [0.1] * len(names), 2, ZERO_WEIGHT[study.adjacency])
    plan = study.plan(design, epsilon=1.0, delta=1e-6)
    return study._lattice_sum(plan, coordinates), plan


def fitted(model: dpm.DensityModes, **knobs: Any) -> Any:
    # The rows are spread evenly: whether anything stands clear of fresh noise is left to chance.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignal)
        return model.fit(epsilon=1.0, **knobs)


# -- without a cluster: Dask's own threads, or none -------------------------------------------------


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("knobs", [{}, {"weights": "w", "max_weight": 2}, {"outside": "ignore"}], ids=str)
def test_a_data_frame_has_the_sum_of_the_table_in_memory(scheduler: str, knobs: dict[str, Any]) -> None:
    wanted, in_memory = exact_sum(frame(), **knobs)
    with dask.config.set(scheduler=scheduler):
        got, plan = exact_sum(dd.from_pandas(frame(), npartitions=PARTITIONS), **knobs)
        other, _ = exact_sum(from_parts([frame().iloc[:3], frame().iloc[3:3], frame().iloc[3:]]), **knobs)
    np.testing.assert_array_equal(got, wanted)
    # Cut elsewhere: the same up to the rounding of each block.
    assert np.abs(other - wanted).max() <= N / BLOCK + 2
    # A partition may have been cut by values: every block counts for the margin, and each begins one.
    assert plan.sensitivity.rounding == pytest.approx(
        (N // BLOCK + PARTITIONS - 1) * in_memory.sensitivity.rounding
    )


def test_persons_and_scales_and_series() -> None:
    wanted, _ = exact_sum(frame(), unit="person", person="who")
    with dask.config.set(scheduler="synchronous"):
        table = dd.from_pandas(frame(), npartitions=5)
        got, _ = exact_sum(table, unit="person", person="who")
        np.testing.assert_array_equal(got, wanted)
        assert PrivateData(table, bounds=BOUNDS, budget=BUDGET, unit="person", person="who").n_units == 41
        fits = [
            dpm.DensityModes(data, ["a", "b"], bounds=BOUNDS, bandwidth="private").fit(
                epsilon=5.0, delta=1e-5, seed=1
            )
            for data in (frame(), table)
        ]
        # The quartiles are the same draws, from the same whole numbers.
        np.testing.assert_array_equal(fits[0].surface.design.bandwidth, fits[1].surface.design.bandwidth)
        one, _ = exact_sum(table["a"], ("a",))
        assert np.abs(one - exact_sum(frame()["a"], ("a",))[0]).max() <= N / BLOCK + 5
        with pytest.raises(InvalidArgument, match="not a stream, query or Dask table"):
            dpm.DensityModes(table, ["a"], bounds=BOUNDS, bandwidth=0.1, mechanism="grams").fit(
                epsilon=1.0, delta=1e-6
            )


def test_arrays() -> None:
    values = frame()[["a", "b"]].to_numpy()
    wanted, _ = exact_sum(values, columns=["a", "b"])
    array = da.from_array(values, chunks=(N // PARTITIONS, 1))
    unknown = da.concatenate([array[array[:, 1] > -1], array[:0]])
    with dask.config.set(scheduler="synchronous"):
        for table in (array, unknown):
            got, _ = exact_sum(table, columns=["a", "b"])
            np.testing.assert_array_equal(got, wanted)
        assert open_source(array[:, 0]).names == ("x1",)
        assert open_source(unknown).n_rows == N
        assert fitted(dpm.DensityModes(array, ["a", "b"], bounds=BOUNDS), delta=1e-6).privacy.n_units == N
        persons = da.from_array(np.column_stack([values[:, 0], np.arange(N) % 7]), chunks=(100, 2))
        study = PrivateData(persons, bounds={"x1": (0, 1)}, budget=BUDGET, unit="person", person="x2")
        assert study.n_units == 7
    with pytest.raises(UnsupportedSource, match="3 dimensions"):
        open_source(da.ones((2, 2, 2)))
    with pytest.raises(NonNumericColumn, match="complex"):
        open_source(da.ones((2, 2), dtype=complex)).kind("x1")
    with pytest.raises(InvalidArgument, match="3 names, but the array has 2"):
        open_source(array, columns=["a", "b", "c"])


def refused(data: Any, match: str, **knobs: Any) -> None:
    study = PrivateData(data, bounds=BOUNDS, budget=BUDGET, **knobs)
    with dask.config.set(scheduler="synchronous"), pytest.raises(UnsupportedSource, match=match) as caught:
        dpm.DensityModes(study, ["a", "b"]).fit(epsilon=1.0)
    assert "314159" not in str(caught.value)
    assert [entry.status for entry in study.ledger.entries()] == ["charged, unfinished"]


@pytest.mark.parametrize("by_person", [False, True])
def test_a_partition_of_another_schema_is_named(by_person: bool) -> None:
    person = {"unit": "person", "person": "who", "adjacency": "add_remove", "n_guess": N}
    knobs: dict[str, Any] = person if by_person else {}
    good = parts()
    order = good[3][["b", "who", "a", "w"]]
    refused(from_parts([*good[:3], order]), "partition 3 has its columns in another order.*'a'", **knobs)
    refused(from_parts([*good[:3], good[3].assign(more=1)]), "partition 3 .* or more of them", **knobs)
    refused(from_parts([good[0], good[1].drop(columns="b")]), "partition 1 has no column 'b'", **knobs)
    text = good[2].assign(b=[f"314159 {i}" for i in range(len(good[2]))])
    refused(from_parts([good[0], text]), "partition 1 holds column 'b' as .*, not as float64", **knobs)
    narrow = good[2].astype({"a": "float32"})
    refused(from_parts([good[0], good[1], narrow]), "partition 2 holds column 'a' as float32", **knobs)
    # A column that is not used may be anything.
    if not knobs:
        study = PrivateData(
            from_parts([good[0], good[1].astype({"w": "int8"})]), bounds=BOUNDS, budget=BUDGET
        )
        fitted(dpm.DensityModes(study, ["a", "b"]))


def test_an_array_chunk_of_another_kind_is_named() -> None:
    values = frame()[["a", "b"]].to_numpy()

    def chunk(part: np.ndarray) -> Any:
        return da.from_delayed(dask.delayed(part), shape=(100, 2), dtype=float)

    for bad, match in (
        (values[:100].astype("f4"), "partition 1 holds the array as float32"),
        (values[:100, :1], "partition 1 has 2 dimensions or another width"),
        (values[:90], "another number of rows than was counted before"),
    ):
        study = da.concatenate([chunk(values[:100]), chunk(bad)])
        refused(study, match, columns=["a", "b"])


def test_a_task_that_fails_is_not_quoted() -> None:
    def load() -> pd.DataFrame:
        raise ValueError("cannot convert 314159.2653")

    table = dd.from_delayed([dask.delayed(load)()], meta=frame(0), verify_meta=False)
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(UnsupportedSource, match=r"Dask could not compute the partitions \(ValueError\)"):
            PrivateData(table, bounds=BOUNDS, budget=BUDGET)
        study = PrivateData(table, bounds=BOUNDS, budget=BUDGET, adjacency="add_remove", n_guess=100)
        with pytest.raises(PydpmodeError) as caught:
            dpm.DensityModes(study, ["a", "b"]).fit(epsilon=1.0)
    assert "314159" not in str(caught.value)


def test_persons_of_partitions_in_another_order_are_refused() -> None:
    """A shuffle may order the rows of a partition anew each time; persons are joined to rows by order."""
    turns = iter(range(1000))

    def load(number: int, moves: bool) -> pd.DataFrame:
        part = parts()[number]
        return part.iloc[np.roll(np.arange(len(part)), next(turns) if moves else 0)]

    def study(moves: bool) -> PrivateData:
        loads = [dask.delayed(load)(number, moves) for number in range(PARTITIONS)]
        table = dd.from_delayed(loads, meta=frame(0), verify_meta=False)
        knobs: dict[str, Any] = {"unit": "person", "person": "who", "adjacency": "add_remove", "n_guess": 41}
        return PrivateData(table, bounds=BOUNDS, budget=BUDGET, **knobs)

    with dask.config.set(scheduler="synchronous"):
        fitted(dpm.DensityModes(study(moves=False), ["a", "b"]))
        with pytest.raises(UnsupportedSource, match="another order"):
            dpm.DensityModes(study(moves=True), ["a", "b"]).fit(epsilon=1.0)


# -- on a cluster of processes ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    # The workers cannot import this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    local = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=0,
        silence_logs=50,
    )
    client = Client(local, timeout=60)
    try:
        yield client
    finally:
        client.close()
        # A busy machine may take longer to end its processes than Dask waits; they end all the same.
        with contextlib.suppress(TimeoutError):
            local.close(timeout=60)


def test_workers_without_this_package_are_refused_before_the_charge(
    cluster: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = PrivateData(from_parts(parts()), bounds=BOUNDS, budget=BUDGET)
    for version, found in (("0.0.0", f"pydpmode {dpm.__version__} "), (dpm.__version__, "no pydpmode")):
        with monkeypatch.context() as patch:
            patch.setattr(dask_source, "_own_version", lambda own=version: own)
            if found == "no pydpmode":
                patch.setattr(dask_source, "_VERSION", "__import__('pydpmode_is_not_here').__version__")
            with pytest.raises(UnsupportedSource, match=f"has {found}"):
                dpm.DensityModes(study, ["a", "b"]).fit(epsilon=1.0)
    assert study.ledger.entries() == ()
    fitted(dpm.DensityModes(study, ["a", "b"]))


def load_slowly(number: int, seconds: float) -> pd.DataFrame:
    time.sleep(seconds)
    return parts()[number]


def slow_table(seconds: float) -> Any:
    loads = [dask.delayed(load_slowly)(number, seconds) for number in range(PARTITIONS)]
    return dd.from_delayed(loads, meta=frame(0), verify_meta=False)


def test_a_cluster_gives_the_same_bits(cluster: Client) -> None:
    assert len(cluster.scheduler_info()["workers"]) == 2
    wanted, _ = exact_sum(frame())
    got, _ = exact_sum(dd.from_pandas(frame(), npartitions=PARTITIONS))
    np.testing.assert_array_equal(got, wanted)
    model = dpm.DensityModes(dd.from_pandas(frame(), npartitions=3), ["a", "b"], bounds=BOUNDS)
    assert fitted(model, delta=1e-6).privacy.n_units == N


def test_a_lost_worker_changes_nothing(cluster: Client) -> None:
    wanted, _ = exact_sum(frame())
    table = slow_table(0.3)
    # Counted under "replace"; here the first pass over the partitions is the one that loses a worker.
    study = PrivateData(table, bounds=BOUNDS, budget=BUDGET, adjacency="add_remove", n_max=N)
    coordinates = [study.coordinate(name) for name in ("a", "b")]
    lower, upper = study.box(coordinates)
    design = LatticeDesign(("a", "b"), lower, upper, [0.1, 0.1], 2, ZERO_WEIGHT["replace"])
    plan = study.plan(design, epsilon=1.0, delta=1e-6)
    victim = next(iter(cluster.scheduler_info()["workers"].values()))
    process = cluster.submit(os.getpid, workers=[victim["name"]], pure=False).result()
    cluster.loop.call_later(0.7, os.kill, process, 9)
    started = time.monotonic()
    got = study._lattice_sum(plan, coordinates)
    assert time.monotonic() - started > 0.7
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    np.testing.assert_array_equal(got, wanted)


def load_at_second_try(number: int, marks: str) -> pd.DataFrame:
    mark = Path(marks) / str(number)
    if not mark.exists():
        mark.touch()
        raise OSError("a disk was away")
    return parts()[number]


def test_a_partition_that_fails_once_is_tried_again(cluster: Client, tmp_path: Path) -> None:
    loads = [dask.delayed(load_at_second_try)(number, str(tmp_path)) for number in range(PARTITIONS)]
    table = dd.from_delayed(loads, meta=frame(0), verify_meta=False)
    got, _ = exact_sum(table, adjacency="add_remove")
    wanted, _ = exact_sum(frame(), adjacency="add_remove")
    np.testing.assert_array_equal(got, wanted)
    assert len(list(tmp_path.iterdir())) == PARTITIONS


@pytest.mark.parametrize("cells", [["\ud800", "b", "c"], [["a"], ["b"], "c"], [2**60, 2**60 + 1, 3]])
def test_the_order_of_any_cells_is_seen(cells: list[Any]) -> None:
    def fingerprint(values: list[Any]) -> int:
        return _fingerprint(pd.DataFrame({"id": pd.Series(values, dtype=object)}), 0, 0, True)

    assert fingerprint(cells) == fingerprint(list(cells))
    assert len({fingerprint([cells[i] for i in order]) for order in itertools.permutations(range(3))}) == 6
