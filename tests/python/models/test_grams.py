"""DensityModes with mechanism="grams": the whole way from a table to a result."""

from __future__ import annotations

import doctest
import json
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from audits import onlooker
from pydpmode import GramsOptions, datasets, errors
from pydpmode.results.plot_files import save_plot

DOCS = Path(__file__).resolve().parents[3] / "docs"
BOX = {"x": (-8.0, 8.0), "y": (-8.0, 8.0)}
TRUTH = np.array([[3, 3], [3, -3], [-3, 3], [-3, -3]], dtype=float)


@pytest.fixture(scope="module")
def four() -> pd.DataFrame:
    return datasets.four_gaussians(5000, seed=1)[0]


def fit(data: Any, epsilon: float = 1.0, seed: int | None = 1, **options: Any) -> Any:
    known = {k: v for k, v in options.items() if k not in GramsOptions.__dataclass_fields__}
    grams = {k: v for k, v in options.items() if k in GramsOptions.__dataclass_fields__}
    known.setdefault("bounds", BOX)
    model = dpm.DensityModes(data, mechanism="grams", grams=GramsOptions(**grams), **known)
    return model.fit(epsilon=epsilon, delta=1e-6, seed=seed)


@pytest.fixture(scope="module")
def result(four: pd.DataFrame) -> Any:
    return fit(four)


def distances(res: Any) -> np.ndarray:
    found = res.modes.to_numpy()
    return np.min(np.linalg.norm(found[:, None] - TRUTH[None], axis=2), axis=0)


def test_four_modes_are_found_without_their_number(result: Any) -> None:
    assert result.n_modes == 4
    assert distances(result).max() < 0.4
    assert result.surface is None
    assert result.reliable.all()
    errors_of = result.std_errors
    assert (errors_of["privacy"] > 0).all()
    assert (errors_of["total"] < 0.3).all()
    assert result.mass.isna().all()


def test_a_seed_repeats_everything_and_is_marked(four: pd.DataFrame, result: Any) -> None:
    again, other = fit(four), fit(four, seed=2)
    np.testing.assert_array_equal(again.trace.trace.positions, result.trace.trace.positions)
    pd.testing.assert_frame_equal(again.modes, result.modes)
    assert not np.array_equal(other.trace.trace.positions[0], result.trace.trace.positions[0])
    assert result.privacy.simulated
    assert "NOT PRIVATE" in result.summary().as_text()


def test_a_real_release_is_private_and_differs_between_runs(four: pd.DataFrame) -> None:
    first, second = (fit(four, seed=None, T=3, k=6) for _ in range(2))
    assert not first.privacy.simulated
    assert first.privacy.mechanism == "grams (pld, correlated, T=3, k=6, m=5000) (discrete Gaussian)"
    assert not np.array_equal(first.trace.trace.densities, second.trace.trace.densities)
    assert "SIMULATED" not in first.summary().as_text()


def test_released_numbers_lie_near_the_truth(four: pd.DataFrame) -> None:
    """Densities and gradients of a round are the kernel's, off by the noise that is stated."""
    res = fit(four, epsilon=200.0, T=4, k=12)
    trace, h = res.trace.trace, res.trace.bandwidth
    rows = (four.to_numpy().clip(-8, 8) + 8) / h
    exact = np.exp(-0.5 * ((trace.positions[0][:, None] - rows[None]) ** 2).sum(axis=2)).mean(axis=1)
    off = (trace.densities[0] - exact / (2 * np.pi)) / trace.density_sd
    assert 0.2 < float(np.sqrt(np.mean(off**2))) < 2.5


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "gaussian4"},
        {"noise": "independent", "k": 8},
        {"finish": "iterates", "n_modes": 4},
        {"accountant": "rdp", "m": 2500, "T": 4, "k": 10},
        {
            "candidates": np.stack(np.meshgrid(np.arange(-7, 8, 2), np.arange(-7, 8, 2)), axis=-1).reshape(
                -1, 2
            )
        },
    ],
    ids=lambda o: "-".join(map(str, list(o)[:2])),
)
def test_other_options_find_the_modes_at_large_epsilon(four: pd.DataFrame, options: dict[str, Any]) -> None:
    res = fit(four, epsilon=8.0, **options)
    assert np.sort(distances(res))[:3].max() < 0.6


@pytest.mark.parametrize(
    "options",
    [
        {"accountant": "published", "noise": "independent", "k": 3},
        {"kernel": "legendre4", "noise": "independent", "k": 3},
        {"accountant": "published", "k": 1},
    ],
    ids=["published", "legendre4", "one ascent"],
)
@pytest.mark.filterwarnings("ignore::pydpmode.errors.LowSignal")
def test_the_published_ways_run_and_say_that_they_have_no_errors(
    four: pd.DataFrame, options: dict[str, Any]
) -> None:
    res = fit(four, **options)
    assert res.trace.finish == "iterates"
    assert res.std_errors["total"].isna().all()
    text = res.summary().as_text()
    assert "No standard errors" in text
    assert "nan" not in text.lower()


def test_one_and_three_columns() -> None:
    x = np.random.default_rng(0).normal(size=(4000, 3))
    one = fit(x[:, 0], bounds=(-5, 5))
    assert one.n_modes == 1
    assert abs(one.modes.iloc[0, 0]) < 0.3
    three = fit(x, bounds=[(-5, 5)] * 3, epsilon=4.0, k=60)
    assert np.abs(three.modes.iloc[0]).max() < 0.5


def test_five_columns_need_public_candidates() -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(4000, 5)) * 0.7
    candidates = generator.uniform(-2, 2, size=(300, 5))
    with pytest.raises(errors.InvalidArgument, match="give public candidates"):
        fit(x, bounds=[(-4, 4)] * 5, bandwidth=0.4)
    res = fit(x, bounds=[(-4, 4)] * 5, epsilon=8.0, candidates=candidates)
    assert np.abs(res.modes.iloc[0]).max() < 0.8


def test_logs_and_unused_columns() -> None:
    generator = np.random.default_rng(0)
    x = pd.DataFrame({"name": "a", "wage": np.exp(generator.normal(10, 0.5, 20_000))})
    res = fit(x, bounds={"wage": (1000, 300_000)}, log="wage")
    assert abs(res.modes.iloc[0, 0] - 10) < 0.15
    assert "-> wage" in res.summary().as_text()


# -- the ledger and the refusals -----------------------------------------------------------------------


def test_the_ledger_is_charged_once_and_composes(four: pd.DataFrame, tmp_path: Path) -> None:
    study = dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6), ledger=tmp_path / "l.jsonl")
    model = dpm.DensityModes(study, mechanism="grams", grams=GramsOptions(T=3, k=5))
    preview = model.preview(epsilon=0.5)
    model.fit(epsilon=0.5, seed=1)
    dpm.DensityModes(study).fit(epsilon=0.5, seed=1)
    entries = study.ledger.entries()
    assert [e.charge.mechanism.split()[0] for e in entries] == ["grams", "surface"]
    assert entries[0].cumulative == pytest.approx(preview.epsilon_after)
    assert entries[1].cumulative < 0.9
    with pytest.raises(errors.BudgetExceeded):
        model.fit(epsilon=0.9, seed=1)
    assert [e.status for e in study.ledger.entries()] == ["released"] * 2


@pytest.mark.parametrize(
    ("study_options", "told"),
    [
        ({"adjacency": "add_remove"}, "adjacency='replace'"),
        ({"unit": "person", "person": "who"}, "protects rows"),
        ({"weights": "w", "max_weight": 1.0}, "no weights"),
    ],
)
def test_what_has_no_proof_is_refused_before_a_row_is_read(
    four: pd.DataFrame, study_options: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = four.assign(who=np.arange(len(four)) // 2, w=1.0)
    study = dpm.PrivateData(table, bounds=BOX, budget=dpm.Budget(1.0, 1e-6), **study_options)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr("pydpmode.privacy.block_work.coordinate_block", never)
    model = dpm.DensityModes(study, mechanism="grams")
    for ask in (model.fit, model.preview):
        with pytest.raises(errors.InvalidArgument, match=told):
            ask(epsilon=0.5)
    assert study.ledger.entries() == ()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mechanism": "mean-shift"}, "mechanism must be"),
        ({"mechanism": "surface", "grams": GramsOptions()}, "give both"),
        ({"mechanism": "grams", "grams": {"T": 3}}, "must be GramsOptions"),
        ({"mechanism": "grams", "order": 4}, "gaussian4"),
        ({"mechanism": "grams", "n_features": 100}, "are for surfaces"),
    ],
)
def test_options_that_do_not_go_together(four: pd.DataFrame, options: dict[str, Any], told: str) -> None:
    with pytest.raises(errors.InvalidArgument, match=told):
        dpm.DensityModes(four, bounds=BOX, **options)


def test_a_surface_has_no_rows_to_climb(four: pd.DataFrame) -> None:
    surface = dpm.DensityModes(four, bounds=BOX).fit(epsilon=1.0, delta=1e-6, seed=1).surface
    with pytest.raises(errors.InvalidArgument, match="needs the rows"):
        dpm.DensityModes(surface, mechanism="grams")


def test_a_release_of_noise_says_so() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(errors.LowSignal):
        res = fit(x, bounds=[(-6, 6)] * 2, epsilon=0.1)
    assert not res.significant.any()
    assert any("mostly noise" in text for text in res.warnings)


def test_the_preview_reads_nothing_and_tells_the_noise(four: pd.DataFrame, result: Any) -> None:
    model = dpm.DensityModes(four, bounds=BOX, mechanism="grams")
    plan: Any = model.preview(epsilon=1.0, delta=1e-6)
    assert plan.density_noise_sd == pytest.approx(result.trace.density_sd)
    assert (plan.rounds, plan.ascents, plan.candidates) == (9, 43, result.trace.candidates)
    assert plan.fits
    assert "nothing read, nothing charged" in str(plan)


# -- the result ----------------------------------------------------------------------------------------


def test_a_result_survives_json_and_pickle(result: Any, tmp_path: Path) -> None:
    result.save(tmp_path / "r.json.gz")
    for copy in (dpm.load_results(tmp_path / "r.json.gz"), pickle.loads(pickle.dumps(result))):
        pd.testing.assert_frame_equal(copy.modes, result.modes)
        pd.testing.assert_series_equal(copy.diagnostics, result.diagnostics)
        np.testing.assert_array_equal(copy.trace.trace.positions, result.trace.trace.positions)
        assert copy.summary().as_text() == result.summary().as_text()
        assert copy.privacy == result.privacy
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.filterwarnings("ignore::pydpmode.errors.LowSignal")
def test_missing_numbers_survive_json(four: pd.DataFrame, tmp_path: Path) -> None:
    res = fit(four, accountant="published", k=1)
    res.save(tmp_path / "r.json")
    copy: Any = dpm.load_results(tmp_path / "r.json")
    assert np.isnan(copy.trace.trace.densities).all()
    assert copy.summary().as_text() == res.summary().as_text()


def test_the_trace_as_a_table(result: Any) -> None:
    frame = result.trace.frame()
    assert list(frame.columns) == ["ascent", "round", "x", "y", "density"]
    assert frame.shape[0] == 10 * 43
    starts = frame[frame["round"] == 0]
    np.testing.assert_array_equal(starts[["x", "y"]].to_numpy(), result.trace.positions[0])
    assert frame["density"].isna().sum() == 43


def test_diagnostics_are_facts_of_the_release(result: Any) -> None:
    facts = result.diagnostics
    assert facts["ascents"] == 43
    assert 4 <= facts["ascents_kept"] < 43
    assert facts["dropped_by_height"] + facts["dropped_by_persistence"] + facts["merged"] + 4 == 43
    assert 0 <= facts["share_floored"] <= 1
    assert facts["mean_move_last_round"] < facts["mean_move_first_round"]


def test_rows_are_labelled_by_the_nearest_mode_but_have_no_basins(result: Any) -> None:
    labels = result.predict(result.modes)
    assert labels.tolist() == [1, 2, 3, 4]
    with pytest.raises(errors.InvalidArgument, match="basin"):
        result.predict(result.modes, method="basin")


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_pictures_show_the_ascents(result: Any, four: pd.DataFrame, tmp_path: Path, suffix: str) -> None:
    assert save_plot(result, tmp_path / f"two{suffix}").stat().st_size > 5000
    assert save_plot(fit(four, columns=["x"]), tmp_path / f"one{suffix}").stat().st_size > 5000


def test_the_picture_of_three_columns(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(3000, 3))
    res = fit(x, bounds=[(-5, 5)] * 3, T=3, k=10)
    assert save_plot(res, tmp_path / "three.png").stat().st_size > 5000


def test_standard_errors_against_repeated_releases(four: pd.DataFrame) -> None:
    """Same rows, fresh noise: errors against the same rows' own modes, over the privacy part."""
    own = dpm.MeanShift(float(fit(four).facts.bandwidth[0])).fit(four).cluster_centers_
    z = []
    for seed in range(12):
        res = fit(four, seed=100 + seed, epsilon=2.0)
        for place, covariance in zip(res.mode_set.locations, res.mode_set.covariance_privacy, strict=True):
            off = place - own[np.argmin(np.linalg.norm(own - place, axis=1))]
            z.append(off / np.sqrt(np.diag(covariance)))
    assert len(z) >= 46
    # About 96 values: the root mean square has standard error .07 (more, as modes share starts).
    assert 0.7 < float(np.sqrt(np.mean(np.square(z)))) < 1.4


# -- what may leave the door ---------------------------------------------------------------------------

CANARIES = (271.8281828459045, 314.1592653589793, 161.8033988749895)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.filterwarnings("ignore::pydpmode.errors.LowSignal")
def test_results_hold_no_row(seed: int | None, tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(150, 320, 1500)
    values[:3] = CANARIES

    def look() -> dict[str, bytes]:
        res = fit(pd.DataFrame({"value": values}), bounds={"value": (100.0, 400.0)}, seed=seed, T=3, k=5)
        res.save(tmp_path / "r.json")
        texts = repr(res) + res.trace.frame().to_csv() + res.summary().as_text()
        return {
            "pickle": pickle.dumps(res),
            "json": (tmp_path / "r.json").read_bytes(),
            "texts": texts.encode(),
        }

    assert not onlooker.always_shown(look, CANARIES)


@pytest.mark.parametrize("change", [1e9, np.nan, -np.inf, 100.0])
@pytest.mark.parametrize(
    "options", [{}, {"accountant": "rdp", "m": 300}, {"accountant": "published", "k": 1}]
)
def test_shapes_warnings_and_ledger_do_not_depend_on_one_row(change: float, options: dict[str, Any]) -> None:
    values = np.random.default_rng(0).uniform(150, 320, 700)
    other = values.copy()
    other[7] = change
    shown = []
    for data in (values, other):
        study = dpm.PrivateData(data, bounds=(100.0, 400.0), budget=dpm.Budget(1.0, 1e-6))
        grams = GramsOptions(**({"T": 2, "k": 4} | options))
        with np.errstate(all="raise"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            coordinates = [study.coordinate("x1")]
            released = study.release_grams(
                grams, coordinates, np.array([20.0]), epsilon=1.0, delta=1e-6, seed=3
            )
        entries = study.ledger.table().drop(columns="time").to_csv()
        shown.append((len(caught), released.trace.positions.shape, entries, released.privacy))
        assert np.isfinite(released.trace.positions).all()
    assert shown[0] == shown[1]


def test_a_failure_while_reading_leaves_the_charge_and_no_rows(
    four: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6))

    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("pydpmode.numerics.score_kernels.ScoreKernel.sums", broken)
    with pytest.raises(MemoryError):
        dpm.DensityModes(study, mechanism="grams").fit(epsilon=0.5)
    assert [e.status for e in study.ledger.entries()] == ["charged, unfinished"]


# -- the documents -------------------------------------------------------------------------------------


def test_the_counterexample_in_the_documents_runs() -> None:
    outcome = doctest.testfile(str(DOCS / "where-we-differ.md"), module_relative=False)
    assert outcome.attempted >= 5
    assert outcome.failed == 0


def test_the_table_in_the_documents_is_that_of_the_study() -> None:
    table = re.findall(r"^\| (four gaussians|five t) \|", (DOCS / "grams.md").read_text(), flags=re.MULTILINE)
    assert len(table) == 40
