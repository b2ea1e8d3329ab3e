"""`device="cuda"` with NumPy in CuPy's place: the same releases, refusals before the charge, and failures."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pydpmode as dpm
from audits import stand_in_device
from pydpmode.budget import Adjacency
from pydpmode.errors import BudgetExceeded, InvalidArgument, MissingDependency, ReadingFailed
from pydpmode.numerics.designs import Design, LatticeDesign, RandomDesign
from pydpmode.numerics.device_sums import DeviceSums, cupy_module
from pydpmode.privacy import devices, private_data
from pydpmode.privacy.features import arithmetic_margin, device_tolerance
from pydpmode.privacy.grouped_release import DeclaredLevels

NAMES = ("a", "b", "c", "d")
BOUNDS = {name: (-3.0, 3.0 + k) for k, name in enumerate(NAMES)}
BLOCK = 2000


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_data, "BLOCK_ROWS", BLOCK)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)


def use(monkeypatch: pytest.MonkeyPatch, **faults: Any) -> None:
    monkeypatch.setattr(devices, "cupy_module", lambda: stand_in_device.module(faults))


def table(n: int = 5000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list(NAMES))
    frame.iloc[::97, 0] = np.nan
    frame.iloc[::89, 1] = 50.0
    return frame.assign(w=rng.uniform(size=n), who=np.arange(n) // 3, level=rng.choice(["x", "y", "z"], n))


def opened(device: Any, data: Any = None, **options: Any) -> dpm.PrivateData:
    rows = table() if data is None else data
    return dpm.PrivateData(rows, bounds=BOUNDS, budget=dpm.Budget(1.0, 1e-6), device=device, **options)


def design_of(study: dpm.PrivateData, d: int) -> tuple[Design, list[Any]]:
    at = [study.coordinate(name) for name in NAMES[:d]]
    box = NAMES[:d], *study.box(at), np.full(d, 1.0), 2, 0.1 if study.adjacency == "add_remove" else 0.5
    return (LatticeDesign(*box) if d < 4 else RandomDesign(*box, n_pairs=1024)), at


def exact(study: dpm.PrivateData, d: int, levels: DeclaredLevels | None = None) -> tuple[Any, np.ndarray]:
    """Return the plan and the whole numbers that the noise would be added to."""
    design, at = design_of(study, d)
    plan = study.plan(design, epsilon=1.0, delta=1e-6, groups=1 if levels is None else levels.count)
    return plan, study._lattice_sum(plan, at, levels)


def assert_the_same(one: tuple[Any, np.ndarray], other: tuple[Any, np.ndarray]) -> None:
    """Both are within half of their margins of the sum in exact arithmetic."""
    (plan, sums), (other_plan, other_sums) = one, other
    assert plan.step == other_plan.step
    away = np.linalg.norm((sums - other_sums) * plan.step)
    margins = [p.sensitivity.arithmetic + p.sensitivity.rounding for p in (plan, other_plan)]
    assert away <= sum(margins) / 2
    assert np.linalg.norm(sums * plan.step) > 1e3


CASES: dict[str, dict[str, Any]] = {
    "replace": {},
    "add_remove": {"adjacency": "add_remove", "n_max": 10_000},
    "weights": {"weights": "w", "max_weight": 0.8},
    "persons": {"unit": "person", "person": "who"},
    "ignore": {"outside": "ignore"},
}


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("d", "case"), [*itertools.product((1, 2, 3), CASES), (4, "weights"), (4, "persons")]
)
def test_the_same_integers_up_to_the_margins(d: int, case: str) -> None:
    options = CASES[case]
    assert_the_same(exact(opened("cuda", **options), d), exact(opened("cpu", **options), d))


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
def test_streams(adjacency: Adjacency) -> None:
    batches = pa.Table.from_pandas(table()).to_batches(max_chunksize=700)

    def stream() -> dpm.RowStream:
        replaced = adjacency == "replace"
        return dpm.RowStream(
            lambda: pa.RecordBatchReader.from_batches(batches[0].schema, batches),
            n_rows=5000 if replaced else None,
        )

    more = {"adjacency": adjacency, **({"n_max": 6000} if adjacency == "add_remove" else {})}
    pair = [exact(opened(device, stream(), **more), 2) for device in ("cuda", "cpu")]
    assert_the_same(pair[0], pair[1])


@pytest.mark.usefixtures("stand_in")
def test_groups() -> None:
    levels = DeclaredLevels("level", ("x", "y"))
    assert_the_same(exact(opened("cuda"), 2, levels), exact(opened("cpu"), 2, levels))


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("rule", [0.9, "ladder", "private"])
def test_a_whole_fit_gives_the_same_modes(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    use(monkeypatch)
    fits = [dpm.DensityModes(opened(d), ["a", "b"], bandwidth=rule).fit(1.0, seed=4) for d in ("cuda", "cpu")]
    np.testing.assert_allclose(fits[0].modes, fits[1].modes, rtol=1e-4, atol=1e-4)
    assert fits[0].privacy.sensitivity == pytest.approx(fits[1].privacy.sensitivity, rel=1e-3)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_regression_and_clustering_go_the_same_way() -> None:
    for make in (
        lambda study: dpm.ModalRegression(study, "b", ["a"], bandwidth={"a": 0.9, "b": 0.9}),
        lambda study: dpm.ModalClustering(study, ["a", "b"], bandwidth=0.9),
    ):
        fits = [make(opened(device)).fit(1.0, seed=4) for device in ("cuda", "cpu")]
        first, second = (fit.surface.vector for fit in fits)
        # The same noise, scaled by sensitivities that differ in the fifth digit.
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-2)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("d", [1, 3, 4])
@pytest.mark.parametrize("case", CASES)
def test_the_margin_is_that_of_all_rows(d: int, case: str) -> None:
    """No bit of another block is relied on: all units count, and every block is rounded by itself."""
    study = opened("cuda", **CASES[case])
    design, _ = design_of(study, d)
    plan = study.plan(design, epsilon=1.0, delta=1e-6)
    n = study.n_ceiling
    tolerance = device_tolerance(design, BLOCK)
    persons = case == "persons"
    assert plan.tolerance == tolerance
    assert plan.sensitivity.arithmetic == arithmetic_margin(n, 2 * BLOCK if persons else 0, tolerance)
    blocks = 1 if persons else -(-n // BLOCK)
    assert plan.sensitivity.rounding == pytest.approx(blocks * plan.step * np.sqrt(plan.length))


def test_a_hundred_million_rows_cost_little() -> None:
    design = LatticeDesign(NAMES[:3], np.zeros(3), np.full(3, 10.0), np.ones(3))
    assert arithmetic_margin(10**8, 0, device_tolerance(design, 2**17)) < 5e-4


@pytest.mark.usefixtures("stand_in")
def test_the_made_up_points_are_public() -> None:
    """The comparison uses the same points whatever the rows are, and none of the rows."""
    design, _ = design_of(opened("cuda"), 2)
    again, _ = design_of(opened("cuda", table(50)), 2)
    pairs = zip(devices._made_up(design), devices._made_up(again), strict=True)
    assert all(np.array_equal(one[0], other[0]) for one, other in pairs)
    for points, _weights in devices._made_up(design):
        assert np.all((points >= design.lower[:, None]) & (points <= design.upper[:, None]))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("fault", stand_in_device.FAULTS)
def test_a_device_that_computes_otherwise_is_refused(
    fault: str, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, **stand_in_device.FAULTS[fault])
    study = opened("cuda")
    design, at = design_of(study, d)
    with pytest.raises(InvalidArgument, match="times what double precision allows") as caught:
        study.release_surface(design, at, epsilon=0.5, delta=1e-6)
    assert "use device='cpu'" in str(caught.value)
    assert not study.ledger.entries()


@pytest.mark.parametrize("count", [2, 4])
def test_a_pipeline_tries_the_device_before_its_first_charge(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, **next(iter(stand_in_device.FAULTS.values())))
    study = opened("cuda")
    with pytest.raises(InvalidArgument, match="times what double precision allows"):
        dpm.PrivateClusteringPipeline(study, n_components=count, n_clusters=2, radius=1.0).fit(0.5)
    assert not study.ledger.entries()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_device_that_returns_no_numbers_is_refused(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()

    def product(a: Any, b: Any) -> Any:
        out = np.matmul(a, b)
        if next(calls) >= 1:  # from the second comparison on
            out = out * value
        return out

    use(monkeypatch, matmul=product)
    study = opened("cuda")
    design, at = design_of(study, 2)
    with pytest.raises(InvalidArgument, match="double precision"), np.errstate(invalid="ignore"):
        study.release_surface(design, at, epsilon=0.5, delta=1e-6)
    assert not study.ledger.entries()


def test_a_device_that_fails_at_once_is_refused_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("cudaErrorNoKernelImageForDevice")

    use(monkeypatch, matmul=broken)
    study = opened("cuda")
    with pytest.raises(InvalidArgument, match="cudaErrorNoKernelImageForDevice"):
        dpm.DensityModes(study, ["a"]).fit(0.5)
    assert not study.ledger.entries()


def test_too_little_memory_is_refused_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cupy_module", lambda: stand_in_device.module(free=2**20))
    study = opened("cuda")
    with pytest.raises(InvalidArgument, match="of the device's memory"):
        dpm.DensityModes(study, ["a", "b"]).fit(0.5)
    assert not study.ledger.entries()


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (RuntimeError, ReadingFailed, "RuntimeError while rows were read; its text is withheld"),
        (MemoryError, MemoryError, "the device ran out of memory"),
    ],
)
def test_a_failure_in_the_middle_stays_charged_and_tells_no_row(
    kind: type[BaseException], error: type[BaseException], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()

    def late(a: Any, b: Any) -> Any:
        # Two comparisons go well, and the first block.
        if next(calls) > 2:
            raise kind(f"illegal memory access at {float(b.ravel()[0])!r}, 0.123456")
        return np.matmul(a, b)

    use(monkeypatch, matmul=late)
    study = opened("cuda")
    with pytest.raises(error, match=words) as caught:
        dpm.DensityModes(study, ["a", "b"], bandwidth=0.9).fit(0.5)
    assert "0.123456" not in str(caught.value)
    assert [entry.status for entry in study.ledger.entries()] == ["charged, unfinished"]


@pytest.mark.parametrize("device", ["gpu", "cuda:0", None, 0])
def test_other_devices_are_refused(device: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"device must be one of \['cpu', 'cuda'\]"):
        opened(device)


def test_without_cupy_nothing_is_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    ledger = tmp_path / "l.jsonl"
    with pytest.raises(MissingDependency, match="needs CuPy"):
        opened("cuda", ledger=ledger)
    assert not ledger.exists()


@pytest.mark.usefixtures("stand_in")
def test_dask_and_grams_are_refused() -> None:
    arrays = pytest.importorskip("dask.array")
    with pytest.raises(InvalidArgument, match="computed on Dask's workers"):
        dpm.PrivateData(arrays.zeros((9, 1)), bounds=(-1, 1), budget=dpm.Budget(1.0, 1e-6), device="cuda")
    study = opened("cuda")
    with pytest.raises(InvalidArgument, match="mechanism='grams' runs on the processor only"):
        dpm.DensityModes(study, ["a"], mechanism="grams").fit(0.5)
    assert not study.ledger.entries()


@pytest.mark.usefixtures("stand_in")
def test_the_budget_is_still_checked() -> None:
    study = opened("cuda")
    with pytest.raises(BudgetExceeded):
        dpm.DensityModes(study, ["a"], bandwidth=0.9).fit(2.0)
    assert not study.ledger.entries()


@pytest.mark.usefixtures("stand_in")
def test_a_preview_needs_no_device_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    study = opened("cuda")
    monkeypatch.setattr(DeviceSums, "feature_sum", None)
    preview = dpm.DensityModes(study, ["a", "b"], bandwidth=0.9).preview(0.5)
    assert "noise" in str(preview)


@pytest.mark.cuda
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_a_release_on_a_gpu(d: int) -> None:
    """Run where CuPy finds a CUDA device; elsewhere NumPy runs the same lines, above."""
    try:
        cupy_module()
    except (MissingDependency, InvalidArgument) as problem:
        pytest.skip(str(problem))
    assert_the_same(exact(opened("cuda"), d), exact(opened("cpu"), d))
    study = opened("cuda")
    design, at = design_of(study, d)
    released = study.release_surface(design, at, epsilon=0.5, delta=1e-6)
    assert np.all(np.isfinite(released.vector))
