"""Private scaler and private PCA: what is charged, what comes out, and what is refused."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidBudget,
    LowSignal,
    MissingBounds,
    NonNumericColumn,
    SurfaceFileError,
    UnknownColumn,
)
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.privacy.features import ZERO_WEIGHT
from pydpmode.privacy.shares import joined, split_by_noise
from pydpmode.results.coordinates import Coordinate
from pydpmode.results.preprocessing import PCAResults, ScalerResults
from pydpmode.results.released_surface import ReleasedSurface

EPSILON, DELTA = 1.0, 1e-6
CANARY = 41.123456789


def rows(n: int = 4000) -> pd.DataFrame:
    """Three columns: two that move together, and one by itself."""
    random = np.random.default_rng(0)
    common = random.normal(size=n)
    return pd.DataFrame(
        {
            "a": 50 + 10 * common + 2 * random.normal(size=n),
            "b": -5 + 2 * common + 0.4 * random.normal(size=n),
            "c": 3 + random.normal(size=n),
        }
    )


BOUNDS = {"a": (0.0, 100.0), "b": (-20.0, 10.0), "c": (-5.0, 11.0)}


def study(data: Any = None, **options: Any) -> dpm.PrivateData:
    options.setdefault("budget", dpm.Budget(EPSILON, DELTA))
    return dpm.PrivateData(rows() if data is None else data, bounds=BOUNDS, **options)


# -- the scaler ---------------------------------------------------------------------------------------


def test_the_scaler_finds_location_and_scale_within_its_errors() -> None:
    data = study()
    found = dpm.PrivateScaler(data).fit(EPSILON, seed=3)
    exact = rows()
    assert found.columns == ("a", "b", "c")
    errors = found.std_errors
    z = (found.location - exact.median().to_numpy()) / errors["location_total"]
    assert np.abs(z).max() < 4
    z = (found.scale - exact.std().to_numpy()) / errors["scale_total"]
    assert np.abs(z).max() < 4
    assert (errors["location_privacy"] < 0.2 * found.scale).all()
    (entry,) = data.ledger.entries()
    assert (entry.charge.mechanism, entry.status) == ("quantiles", "released")
    assert entry.cumulative <= EPSILON


def test_transform_and_back() -> None:
    found = dpm.PrivateScaler(study()).fit(EPSILON, seed=3)
    new = pd.DataFrame({"c": [3.0], "x": [0.0], "a": [60.0], "b": [-5.0]}, index=["row"])
    scaled = found.transform(new)
    assert list(scaled.index) == ["row"]
    pd.testing.assert_frame_equal(
        found.inverse_transform(scaled).reset_index(drop=True), new[["a", "b", "c"]].reset_index(drop=True)
    )
    with pytest.raises(UnknownColumn, match="'b'"):
        found.transform(new[["a", "c"]])
    # The coordinates of a later release are the same map, clipped.
    points = np.column_stack(
        [c.evaluate({k: new[k].to_numpy() for k in new}) for c in found.scaled_coordinates()]
    )
    np.testing.assert_allclose(points, scaled)


def test_a_log_scale_goes_back_to_the_column_and_has_no_affine_coordinate() -> None:
    found = dpm.PrivateScaler(rows().abs(), ["a"], bounds={"a": (1, 100)}, log="a").fit(
        EPSILON, DELTA, seed=1
    )
    assert found.columns == ("log(a)",)
    assert 45 < float(found.inverse_transform([[0.0]])["a"].iloc[0]) < 52
    with pytest.raises(InvalidArgument, match="only plain number columns"):
        found.scaled_coordinates()


def test_a_constant_column_gets_the_floor_and_one_warning() -> None:
    data = rows().assign(c=3.0)
    with pytest.warns(LowSignal, match=r"no spread was seen in \['c'\]"):
        found = dpm.PrivateScaler(study(data)).fit(EPSILON, seed=1)
    assert found.floored.tolist() == [0, 0, 1]
    np.testing.assert_allclose(found.scale[2], 0.16)
    assert abs(found.location[2] - 3) < 0.02
    assert "No spread was seen in c" in found.summary().as_text()
    assert "column of several modes" in " ".join(found.summary().as_text().split())
    assert len(found.warnings) == 1


def test_missing_values_count_nothing_and_are_not_told() -> None:
    half = rows()
    half.loc[::2, "a"] = math.nan
    found = dpm.PrivateScaler(study(half), ["a"]).fit(EPSILON, seed=1)
    assert abs(found.location[0] - 50) < 2
    assert abs(found.scale[0] - 10.2) < 2


def test_under_add_remove_errors_need_a_guess_of_n() -> None:
    plain = dpm.PrivateScaler(study(adjacency="add_remove")).fit(EPSILON, seed=1)
    assert np.isnan(plain.sampling_errors).all()
    guessed = dpm.PrivateScaler(study(adjacency="add_remove", n_guess=4000)).fit(EPSILON, seed=1)
    assert np.isfinite(guessed.std_errors.to_numpy()).all()
    again = ScalerResults.from_dict(json.loads(json.dumps(plain.to_dict(), allow_nan=False)))
    assert np.isnan(again.sampling_errors).all()


# -- components ---------------------------------------------------------------------------------------


def test_components_are_those_of_the_rows() -> None:
    data = study()
    found = dpm.PrivatePCA(data, n_components=2, radius=0.6).fit(EPSILON, label="pca", seed=2)
    scaled = (rows() - found.location) / found.scale
    clipped = scaled.mul(np.minimum(1, 0.6 / np.sqrt((scaled**2).sum(axis=1))), axis=0)
    values, vectors = np.linalg.eigh(clipped.T @ clipped / len(clipped))
    assert abs(vectors[:, -1] @ found.components[0]) > 0.999
    assert abs(found.explained_variance[0] - values[-1]) < 4 * found.privacy_errors[0]
    np.testing.assert_allclose(found.components @ found.components.T, np.eye(2), atol=1e-12)
    assert [(e.charge.label, e.charge.mechanism, e.status) for e in data.ledger.entries()] == [
        ("pca: mean", "mean", "released"),
        ("pca: moments", "second moments", "released"),
    ]
    assert 0.995 * EPSILON < data.ledger.spent() <= EPSILON
    assert (found.epsilon, found.delta) == (pytest.approx(EPSILON, rel=0.005), DELTA)
    assert np.abs(found.location - rows().mean().to_numpy()).max() < 5 * found.location_errors.max()


@pytest.mark.filterwarnings("ignore::pydpmode.errors.LowSignal")
@pytest.mark.parametrize("whiten", [False, True])
def test_scores_and_back(whiten: bool) -> None:
    found = dpm.PrivatePCA(study(), n_components=3, radius=1.0, whiten=whiten).fit(EPSILON, seed=2)
    new = rows(20)
    scores = found.transform(new)
    assert list(scores.columns) == ["pc1", "pc2", "pc3"]
    pd.testing.assert_frame_equal(found.inverse_transform(scores), new)
    pd.testing.assert_frame_equal(found.inverse_transform(scores.to_numpy()), new)
    coordinates = found.score_coordinates(reach=1e6)
    points = np.column_stack([c.evaluate({k: new[k].to_numpy() for k in new}) for c in coordinates])
    np.testing.assert_allclose(points, scores, atol=1e-9)
    spread = found.transform(rows()).std()
    assert 0.7 < spread["pc1"] / (1 if whiten else math.sqrt(found.explained_variance[0])) < 1.3


def test_transforms_are_saved_and_loaded(tmp_path: Path) -> None:
    scaler = dpm.PrivateScaler(study()).fit(EPSILON / 2, seed=1)
    pca = dpm.PrivatePCA(study(), n_components=2, radius=1.0).fit(EPSILON, seed=2)
    for found, name in ((scaler, "scaler.json.gz"), (pca, "pca.json")):
        found.save(tmp_path / name)
        again = dpm.load_results(tmp_path / name)
        assert type(again) is type(found)
        assert again.to_dict() == found.to_dict()
        assert type(found).load(tmp_path / name).to_dict() == found.to_dict()
    with pytest.raises(SurfaceFileError, match="holds PCAResults, not ScalerResults"):
        type(scaler).load(tmp_path / "pca.json")


def test_a_summary_states_epsilon_in_few_digits() -> None:
    for epsilon in (1.0, 0.3):
        found = dpm.PrivatePCA(study(), n_components=1, radius=1.0).fit(epsilon, seed=2)
        line = next(one for one in found.summary().as_text().split("\n") if "Epsilon:" in one)
        shown = line.split("Epsilon:")[1].split()[0]
        assert len(shown) <= 6
        assert float(shown) == pytest.approx(epsilon, rel=1e-3)


def test_a_private_radius_is_one_more_release() -> None:
    data = study()
    found = dpm.PrivatePCA(data, n_components=1, radius="private").fit(EPSILON, seed=2)
    scaled = (rows() - found.location) / found.scale
    assert abs(found.radius / np.sqrt((scaled**2).sum(axis=1)).quantile(0.25) - 1) < 0.05
    assert [e.charge.mechanism for e in data.ledger.entries()] == ["mean", "quantiles", "second moments"]
    assert data.ledger.spent() <= EPSILON


def test_a_public_centre_costs_nothing() -> None:
    data = study()
    centre = {"a": 50.0, "b": -5.0, "c": 3.0}
    found = dpm.PrivatePCA(data, n_components=1, radius=1.0, centre=centre, scale=10.0).fit(EPSILON, seed=1)
    assert len(data.ledger.entries()) == 1
    assert found.location.tolist() == [50.0, -5.0, 3.0]
    assert not found.location_errors.any()
    box = dpm.PrivatePCA(study(), n_components=1, radius=1.0, centre="box").fit(EPSILON, seed=1)
    assert box.location.tolist() == [50.0, -5.0, 3.0]


def test_a_released_scaler_gives_centre_and_scale() -> None:
    data = study()
    scaler = dpm.PrivateScaler(data).fit(0.3, seed=1)
    found = dpm.PrivatePCA(data, n_components=2, radius=1.5, centre=scaler, scale=scaler).fit(0.5, seed=1)
    np.testing.assert_array_equal(found.scale, scaler.scale)
    assert len(data.ledger.entries()) == 2


def test_collinear_and_constant_columns_and_fewer_rows_than_columns() -> None:
    data = rows().assign(b=lambda f: f["a"] / 10, c=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignal)
        found = dpm.PrivatePCA(study(data), n_components=3, radius=1.0).fit(EPSILON, seed=1)
        few = dpm.PrivatePCA(study(rows(2)), n_components=3, radius=1.0).fit(EPSILON, seed=1)
        empty = dpm.PrivatePCA(study(rows().assign(a=math.nan)), n_components=2, radius=1.0).fit(
            EPSILON, seed=1
        )
    assert abs(found.components[0][2]) < 0.1
    for result in (found, few, empty):
        assert (result.explained_variance > 0).all()
        assert np.isfinite(result.transform(rows(5)).to_numpy()).all()
    assert not few.clear.any()


def test_components_that_are_only_noise_are_told() -> None:
    with pytest.warns(LowSignal, match="0 of 2 components are above the privacy noise"):
        found = dpm.PrivatePCA(study(rows(50)), n_components=2, radius=1.0).fit(0.1, seed=1)
    assert "pc1 ?" in found.summary().as_text()


# -- refused before anything is read or charged -------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"radius": None}, MissingBounds, "radius is missing: give a PUBLIC distance"),
        ({"radius": 0.0}, InvalidArgument, "finite and at least"),
        ({"radius": "auto"}, InvalidArgument, "number > 0 or 'private'"),
        ({"n_components": 4}, InvalidArgument, "in 1..3"),
        ({"n_components": 0}, InvalidArgument, "in 1..3"),
        ({"centre": {"a": 1.0}}, InvalidArgument, r"no number for \['b', 'c'\]"),
        ({"centre": "mean"}, InvalidArgument, "'private', 'box'"),
        ({"scale": -1.0}, InvalidArgument, "finite and > 0"),
        ({"scale": {"a": 1.0, "b": 0.0, "c": 1.0}}, InvalidArgument, "scales must be > 0"),
        ({"scale": "sd"}, InvalidArgument, "'box', a number"),
        ({"columns": ["a", "d"]}, UnknownColumn, "no public bounds"),
        ({"columns": ["a", "a"]}, InvalidArgument, "different names"),
        ({"bounds": BOUNDS}, InvalidArgument, "already has its bounds"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    data = study()
    given = {"n_components": 2, "radius": 1.0, **options}
    with pytest.raises(error, match=message):
        dpm.PrivatePCA(data, **given)
    assert not data.ledger.entries()


@pytest.mark.parametrize(
    ("options", "farthest"),
    [
        ({}, "3.464"),  # a private centre may be a corner: the diagonal of a box of half widths 1
        ({"centre": "box"}, "1.732"),
        ({"centre": {"a": 0.0, "b": -5.0, "c": 3.0}}, "2.449"),
        ({"centre": "box", "scale": 10.0}, "5.281"),
    ],
)
def test_a_radius_that_no_row_can_have_is_refused(options: dict[str, Any], farthest: str) -> None:
    data = study()
    with pytest.raises(InvalidArgument, match=f"more than {farthest}, the farthest"):
        dpm.PrivatePCA(data, n_components=1, radius=float(farthest) + 0.01, **options).fit(EPSILON, seed=1)
    assert not data.ledger.entries()
    found = dpm.PrivatePCA(data, n_components=1, radius=float(farthest) - 0.01, **options).fit(
        EPSILON, seed=1
    )
    assert found.radius == pytest.approx(float(farthest) - 0.01)


def test_bounds_and_budget_are_never_taken_from_the_data() -> None:
    with pytest.raises(MissingBounds):
        dpm.PrivateScaler(rows())
    with pytest.raises(MissingBounds):
        dpm.PrivatePCA(rows(), n_components=1, radius=1.0)
    with pytest.raises(InvalidBudget, match="epsilon is missing"):
        dpm.PrivateScaler(study()).fit()
    with pytest.raises(NonNumericColumn, match="name"):
        dpm.PrivateScaler(rows().assign(name="x"), ["name"], bounds={"name": (0, 1)})
    with pytest.raises(InvalidArgument, match="log names"):
        dpm.PrivateScaler(study(), ["a"], log="b")


def test_what_does_not_fit_is_refused_whole() -> None:
    data = study()
    dpm.PrivateScaler(data).fit(0.8, seed=1)
    with pytest.raises(BudgetExceeded, match="several releases"):
        dpm.PrivatePCA(data, n_components=1, radius=1.0).fit(0.9, seed=1)
    with pytest.raises(BudgetExceeded):
        dpm.PrivateScaler(data).fit(0.9, seed=1)
    with pytest.raises(InvalidArgument, match="200 characters"):
        dpm.PrivatePCA(data, n_components=1, radius=1.0).fit(0.1, label="x" * 195, seed=1)
    assert len(data.ledger.entries()) == 1
    model = dpm.PrivateScaler(rows(), bounds=BOUNDS)
    model.fit(0.5, DELTA, seed=1)
    with pytest.raises(BudgetExceeded):
        model.fit(0.5, DELTA, seed=1)


def test_a_failure_after_the_charge_is_not_refunded(monkeypatch: pytest.MonkeyPatch) -> None:
    from pydpmode.privacy import preprocessing

    data = study()

    def fail(length: int, scale: float) -> None:
        raise RuntimeError("no entropy")

    monkeypatch.setattr(preprocessing, "discrete_gaussian", fail)
    with pytest.raises(RuntimeError) as caught:
        dpm.PrivatePCA(data, n_components=1, radius=1.0).fit(0.5)
    assert [e.status for e in data.ledger.entries()] == ["charged, unfinished"]
    here = caught.tb
    held = []
    while here is not None:
        if here.tb_frame.f_code.co_filename == preprocessing.__file__:
            held += list(here.tb_frame.f_locals)
        here = here.tb_next
    assert "exact" not in held


# -- what a result holds --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pydpmode.errors.LowSignal")
def test_results_hold_no_row_and_survive_json_and_pickle() -> None:
    data = rows(300)
    data.loc[7, "a"] = CANARY
    private = study(data)
    scaler = dpm.PrivateScaler(private).fit(0.3)
    pca = dpm.PrivatePCA(private, n_components=2, radius=1.0).fit(0.5)
    for result, kind in ((scaler, ScalerResults), (pca, PCAResults)):
        text = json.dumps(result.to_dict(), allow_nan=False)
        again = kind.from_dict(json.loads(text))
        assert again.to_dict() == result.to_dict()
        assert str(again) == str(result)
        assert "41.123456" not in text + str(result)
        assert CANARY.hex().encode() not in pickle.dumps(result)
        copy = pickle.loads(pickle.dumps(result))
        np.testing.assert_array_equal(copy.location, result.location)
        assert not result.simulated
        with pytest.raises(ValueError, match="read-only"):
            result.location[0] = 0.0
        with pytest.raises(SurfaceFileError, match="damaged"):
            kind.from_dict({**result.to_dict(), "privacy": [{}]})
    with pytest.raises(SurfaceFileError, match="not a pydpmode scaler"):
        ScalerResults.from_dict(pca.to_dict())


def test_a_seed_is_told_everywhere() -> None:
    found = dpm.PrivatePCA(study(), n_components=1, radius=1.0).fit(EPSILON, seed=1)
    same = dpm.PrivatePCA(study(), n_components=1, radius=1.0).fit(EPSILON, seed=1)
    np.testing.assert_array_equal(found.components, same.components)
    text = found.summary().as_text()
    assert found.simulated
    assert "NOT PRIVATE" in text
    assert "(simulated Gaussian)" in text
    assert "2 releases" in text


def test_persons_and_weights() -> None:
    data = rows(600).assign(person=np.arange(600) // 3, w=1.0)
    by_person = dpm.PrivatePCA(
        study(data, unit="person", person="person"), ["a", "b"], n_components=1, radius=1.0
    ).fit(EPSILON, seed=1)
    assert by_person.privacy[0].unit == "person"
    assert by_person.records <= 200
    weighted = dpm.PrivatePCA(
        study(data, weights="w", max_weight=2.0), ["a", "b"], n_components=1, radius=1.0
    ).fit(EPSILON, seed=1)
    assert 200 < weighted.records < 400


# -- shares -------------------------------------------------------------------------------------------


def test_shares_compose_to_the_whole_and_fit_a_ledger() -> None:
    whole = dpm.Budget(0.7, 1e-5)
    parts = split_by_noise(whole, (0.1, 0.35, 0.55))
    assert joined(parts).epsilon == pytest.approx(0.7, rel=0.003)
    assert joined(parts).epsilon <= 0.7
    assert joined(parts[:1]) == parts[0]
    for wrong in ((), (0.0, 1.0), (math.inf,), (-1.0, 2.0)):
        with pytest.raises(InvalidArgument, match="shares must be"):
            split_by_noise(whole, wrong)


@pytest.mark.parametrize("part", ["centre", "scale"])
def test_a_simulated_scaler_makes_no_private_components(part: str) -> None:
    data = study(budget=dpm.Budget(4.0, DELTA))
    simulated = dpm.PrivateScaler(data).fit(1.0, seed=1)
    private = dpm.PrivateScaler(data).fit(1.0)
    charged = len(data.ledger.entries())
    for model in (
        dpm.PrivatePCA(data, n_components=1, radius=1.0, **{part: simulated}),
        dpm.PrivateClusteringPipeline(data, n_components=1, radius=1.0, **{part: simulated}),
    ):
        with pytest.raises(InvalidArgument, match="simulated, NOT private"):
            model.fit(1.0)
    assert len(data.ledger.entries()) == charged
    both = dpm.PrivatePCA(data, n_components=1, radius=1.0, **{part: simulated}).fit(0.5, seed=2)
    assert both.simulated
    assert not dpm.PrivatePCA(data, n_components=1, radius=1.0, **{part: private}).fit(0.5).simulated


@pytest.mark.parametrize("kind", ["scaled", "score"])
def test_simulated_coordinates_make_no_private_release(kind: str) -> None:
    data = study(budget=dpm.Budget(4.0, DELTA))

    def coordinates(seed: int | None) -> tuple[Coordinate, ...]:
        if kind == "scaled":
            return dpm.PrivateScaler(data).fit(0.5, seed=seed).scaled_coordinates()[:1]
        return dpm.PrivatePCA(data, n_components=1, radius=1.0).fit(0.5, seed=seed).score_coordinates()

    def design(where: tuple[Coordinate, ...]) -> LatticeDesign:
        return LatticeDesign((where[0].name,), *data.box(where), [0.5], 2, ZERO_WEIGHT["replace"])

    simulated, private = coordinates(1), coordinates(None)
    charged = len(data.ledger.entries())
    with pytest.raises(InvalidArgument, match="simulated, NOT private"):
        data.release_surface(design(simulated), simulated, epsilon=0.5, delta=1e-7)
    assert len(data.ledger.entries()) == charged
    both = data.release_surface(design(simulated), simulated, epsilon=0.5, delta=1e-7, seed=1)
    assert both.privacy.simulated
    # The mark is kept by files.
    assert ReleasedSurface.from_dict(both.to_dict()).coordinates[0].simulated
    assert not data.release_surface(design(private), private, epsilon=0.5, delta=1e-7).privacy.simulated


def test_dates_and_durations_are_written_as_such() -> None:
    random = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "day": pd.Timestamp("2024-03-01") + pd.to_timedelta(random.normal(0, 9, 3000), unit="D"),
            "wait": pd.to_timedelta(random.normal(20, 2, 3000), unit="min"),
        }
    )
    bounds = {
        "day": (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-12-31")),
        "wait": (pd.Timedelta(0), pd.Timedelta(hours=1)),
    }
    told = dpm.PrivateScaler(table, bounds=bounds).fit(2.0, 1e-6, seed=1).summary().as_text()
    day, wait = (next(line for line in told.split("\n") if line.startswith(name)) for name in ("day", "wait"))
    assert day.split()[1].startswith("2024-0")
    assert day.split()[-2:] == ["2024-01-01", "2024-12-31"]
    assert " d " in day
    assert " min " in wait
    assert wait.endswith("1 h")
    assert "e+0" not in told
