from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pydpmode.budget import PrivacySpent
from pydpmode.errors import (
    DuplicateColumns,
    InvalidArgument,
    NonNumericColumn,
    SurfaceFileError,
    UnknownColumn,
    UnsupportedSource,
)
from pydpmode.numerics import feature_sums
from pydpmode.numerics.designs import LatticeDesign
from pydpmode.numerics.kernel_surface import KernelSurface
from pydpmode.numerics.mode_seeking import find_modes
from pydpmode.numerics.mode_set import ModeSearchDiagnostics, ModeSet
from pydpmode.results import results as results_module
from pydpmode.results.released_surface import ReleasedSurface
from pydpmode.results.results import Coordinate, DensityModesResults, Results, load_results

Z95 = NormalDist().inv_cdf(0.975)


def same(one: DensityModesResults, other: DensityModesResults) -> bool:
    return json.dumps(one.to_dict()) == json.dumps(other.to_dict())


# ------------------------------------------------------------------------------ what it says


def test_tables_have_the_promised_shape(wages: DensityModesResults) -> None:
    assert wages.n_modes == 2
    assert list(wages.modes.columns) == ["age", "log(wage)"]
    assert list(wages.modes.index) == [1, 2]
    assert wages.modes.index.name == "mode"
    pd.testing.assert_frame_equal(wages.params, wages.modes)
    for table in (wages.std_errors, wages.conf_int()):
        assert table.index.names == ["mode", "column"]
        assert list(table.index) == [(1, "age"), (1, "log(wage)"), (2, "age"), (2, "log(wage)")]
    assert list(wages.std_errors.columns) == ["privacy", "sampling", "bias", "total"]
    assert list(wages.conf_int().columns) == ["lower", "upper", "reliable"]


def test_errors_are_the_roots_of_the_diagonals_and_add_up(wages: DensityModesResults) -> None:
    errors = wages.std_errors
    assert errors.loc[(1, "log(wage)"), "privacy"] == pytest.approx(0.0034, rel=1e-12)
    assert errors.loc[(2, "age"), "sampling"] == pytest.approx(0.74, rel=1e-12)
    parts = errors[["privacy", "sampling", "bias"]]
    np.testing.assert_allclose(errors["total"] ** 2, (parts**2).sum(axis=1))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_intervals_follow_the_level(wages: DensityModesResults, level: float) -> None:
    interval = wages.conf_int(level)
    half = NormalDist().inv_cdf((1 + level) / 2) * wages.std_errors["total"]
    centre = wages.modes.to_numpy().ravel()
    np.testing.assert_allclose(interval["lower"], centre - half)
    np.testing.assert_allclose(interval["upper"], centre + half)
    assert list(interval["reliable"]) == [True, True, False, False]


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 95, math.nan, "0.9", True, None])
def test_levels_outside_zero_and_one_are_refused(wages: DensityModesResults, level: Any) -> None:
    with pytest.raises(InvalidArgument, match="level"):
        wages.conf_int(level)


def test_covariance_by_source(wages: DensityModesResults) -> None:
    parts = [wages.cov_params(2, source=s) for s in ("privacy", "sampling", "bias")]
    np.testing.assert_allclose(wages.cov_params(2), parts[0] + parts[1] + parts[2])
    assert wages.cov_params(1).loc["age", "age"] == pytest.approx(0.21**2 + 0.11**2 + 0.055**2)


@pytest.mark.parametrize("mode", [0, 3, -1, 1.5, True, "1", math.nan, math.inf])
def test_unknown_modes_are_refused(wages: DensityModesResults, mode: Any) -> None:
    with pytest.raises(InvalidArgument, match="mode must"):
        wages.cov_params(mode)


def test_unknown_source_is_refused(wages: DensityModesResults) -> None:
    with pytest.raises(InvalidArgument, match="source must"):
        wages.cov_params(1, source="noise")  # type: ignore[arg-type]


def test_series_by_mode(wages: DensityModesResults) -> None:
    assert wages.mass.to_dict() == {1: 0.7412, 2: 0.2377}
    assert wages.density.to_dict() == {1: 0.5, 2: 0.25}
    assert wages.reliable.to_dict() == {1: True, 2: False}
    assert wages.refined.to_dict() == {1: True, 2: True}
    assert wages.significant.to_dict() == {1: True, 2: True}


def test_diagnostics_hold_one_scalar_per_fact(wages: DensityModesResults) -> None:
    facts = wages.diagnostics
    assert facts["modes"] == 2
    assert facts["unreliable_modes"] == 1
    assert facts["bandwidth[log(wage)]"] == 0.1512
    assert facts["density_noise_sd"] == pytest.approx(3.1e-4)
    assert facts["negative_mass"] == 0.0123
    assert facts["dropped_by_height"] == 9
    assert facts["private"] is True
    assert facts["modes_requested"] is None
    assert all(np.isscalar(value) or value is None for value in facts)


def test_modes_asked_for_come_from_the_search_or_the_caller(wages: DensityModesResults) -> None:
    asked = dataclasses.replace(
        wages.mode_set, diagnostics=dataclasses.replace(wages.mode_set.diagnostics, requested=3)
    )
    assert wages.surface is not None
    assert DensityModesResults.from_modes(asked, wages.surface).n_modes_requested == 3
    assert DensityModesResults.from_modes(asked, wages.surface, n_modes_requested=4).n_modes_requested == 4


def test_logs_are_taken_back(wages: DensityModesResults) -> None:
    original = wages.modes_original
    assert original.columns.names == ["column", "value"]
    assert original.loc[1, ("wage", "estimate")] == pytest.approx(math.exp(10.66271))
    half = Z95 * math.hypot(0.0034, 0.0021, 0.00105)
    assert original.loc[1, ("wage", "upper")] == pytest.approx(math.exp(10.66271 + half))
    assert original.loc[1, ("age", "estimate")] == 38.2134
    narrower = wages.back_transformed(0.5)
    assert narrower.loc[1, ("wage", "upper")] < original.loc[1, ("wage", "upper")]


def test_dates_and_durations_are_taken_back(times: DensityModesResults) -> None:
    original = times.modes_original
    assert original.loc[1, ("visit", "estimate")] == pd.Timestamp("2020-04-10 09:36:00")
    assert original.loc[1, ("stay", "estimate")] == pd.Timedelta(days=4.2)
    assert original.loc[1, ("visit", "lower")] < original.loc[1, ("visit", "estimate")]


def test_times_beyond_the_calendar_are_not_a_time() -> None:
    back = Coordinate("t", "t", kind="datetime").back(np.array([1e30, math.nan, -math.inf, 0.0]))
    assert list(pd.isna(back)) == [True, True, True, False]


def test_overflowing_logs_become_infinite_silently() -> None:
    assert Coordinate("log(x)", "x", "log").back(np.array([1e4])).tolist() == [math.inf]


def test_names_stay_distinct_when_a_column_is_used_twice(wages: DensityModesResults) -> None:
    twice = dataclasses.replace(
        wages, coordinates=(Coordinate("wage", "wage"), Coordinate("log(wage)", "wage", "log"))
    )
    assert set(twice.modes_original.columns.get_level_values(0)) == {"wage", "log(wage)"}


def test_no_modes_give_empty_tables(nothing_found: DensityModesResults) -> None:
    assert nothing_found.modes.shape == (0, 2)
    assert list(nothing_found.modes.columns) == ["age", "log(wage)"]
    assert nothing_found.std_errors.shape == (0, 4)
    assert nothing_found.std_errors.index.names == ["mode", "column"]
    assert nothing_found.conf_int().shape == (0, 3)
    assert nothing_found.modes_original.shape == (0, 6)
    assert nothing_found.mass.size == 0
    assert nothing_found.diagnostics["modes"] == 0
    with pytest.raises(InvalidArgument, match="no mode was found"):
        nothing_found.cov_params()


@pytest.mark.parametrize("name", ["resid", "fittedvalues", "llf", "aic", "bic"])
def test_what_needs_rows_is_refused_with_the_reason(wages: DensityModesResults, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no {name}: .*private row"):
        getattr(wages, name)
    assert not hasattr(wages, name)


def test_repr_says_what_it_is_and_how_to_go_on(
    wages: DensityModesResults, simulated: DensityModesResults, baseline: DensityModesResults
) -> None:
    assert "2 modes" in repr(wages)
    assert "epsilon=1, delta=1e-06, replace one row" in repr(wages)
    assert ".summary()" in repr(wages)
    assert "SIMULATED" not in repr(wages)
    assert "SIMULATED: NOT PRIVATE" in repr(simulated)
    assert "not private" in repr(baseline)


# -------------------------------------------------------------------------------- frozen


def test_it_cannot_be_changed(wages: DensityModesResults) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        wages.label = "other"  # type: ignore[misc]
    for name in results_module._MODE_SHAPES:
        with pytest.raises(ValueError, match="read-only"):
            getattr(wages.mode_set, name)[...] = 0
    with pytest.raises(ValueError, match="read-only"):
        wages.facts.bandwidth[0] = 1.0


def test_the_searcher_may_reuse_its_arrays(wages: DensityModesResults) -> None:
    mine = dataclasses.replace(wages.mode_set, locations=wages.mode_set.locations.copy())
    assert wages.surface is not None
    result = DensityModesResults.from_modes(mine, wages.surface)
    mine.locations[0, 0] = -1.0
    assert result.modes.iloc[0, 0] == 38.2134


def test_changing_a_table_changes_nothing(wages: DensityModesResults) -> None:
    for name in ("modes", "std_errors", "mass", "density"):
        table = getattr(wages, name)
        before = table.copy()
        table.iloc[0] = 0.0
        assert getattr(wages, name).equals(before), name


def test_shapes_that_do_not_fit_are_refused(wages: DensityModesResults) -> None:
    with pytest.raises(InvalidArgument, match="coordinates must name"):
        dataclasses.replace(wages, coordinates=wages.coordinates[:1])
    short = dataclasses.replace(wages.mode_set, mass=np.array([1.0]))
    with pytest.raises(InvalidArgument, match=r"mode_set.mass must have shape \(2,\)"):
        dataclasses.replace(wages, mode_set=short)


@pytest.mark.parametrize(
    "wrong", [{"transform": "sqrt"}, {"kind": "text"}, {"transform": "log", "kind": "datetime"}]
)
def test_coordinates_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        Coordinate("x", "x", **wrong)


def test_the_guarantee_is_that_of_the_surface(wages: DensityModesResults) -> None:
    assert wages.surface is not None
    assert wages.privacy is wages.surface.privacy  # type: ignore[attr-defined]
    assert wages.label == "age by wage"


# -------------------------------------------------------------------------------- saving


def test_json_round_trip_is_exact(wages: DensityModesResults, tmp_path: Path, mixture_reader: None) -> None:
    path = tmp_path / "result.json"
    wages.save(path)
    back = load_results(path)
    assert isinstance(back, DensityModesResults)
    for name in results_module._MODE_SHAPES:
        stored, read = getattr(wages.mode_set, name), getattr(back.mode_set, name)
        assert read.dtype == stored.dtype
        np.testing.assert_array_equal(read, stored)
    assert back.mode_set.diagnostics == wages.mode_set.diagnostics
    assert back.privacy == wages.privacy
    assert back.coordinates == wages.coordinates
    assert back.warnings == wages.warnings
    assert same(back, wages)
    assert str(back.summary()) == str(wages.summary())
    points = np.array([[40.0, 10.0]])
    assert back.surface is not None
    assert wages.surface is not None
    np.testing.assert_array_equal(back.surface.density(points), wages.surface.density(points))
    assert list(tmp_path.iterdir()) == [path]


def test_compressed_files_hold_the_same_bytes_every_time(
    wages: DensityModesResults, tmp_path: Path, mixture_reader: None
) -> None:
    one, two = tmp_path / "one.json.gz", tmp_path / "two.json.gz"
    wages.save(one)
    wages.save(two)
    assert one.read_bytes() == two.read_bytes()
    assert same(DensityModesResults.load(one), wages)


def test_awkward_floats_survive(wages: DensityModesResults, tmp_path: Path, mixture_reader: None) -> None:
    odd = dataclasses.replace(
        wages.mode_set,
        locations=np.array([[0.1 + 0.2, 5e-324], [-0.0, 1.7976931348623157e308]]),
        covariance_privacy=np.full((2, 2, 2), math.nan),
        persistence=np.array([math.inf, -math.inf]),
    )
    result = dataclasses.replace(wages, mode_set=odd)
    result.save(tmp_path / "odd.json")
    text = (tmp_path / "odd.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    back = DensityModesResults.load(tmp_path / "odd.json")
    assert back.mode_set.locations.tobytes() == odd.locations.tobytes()
    np.testing.assert_array_equal(back.mode_set.covariance_privacy, odd.covariance_privacy)
    np.testing.assert_array_equal(back.mode_set.persistence, odd.persistence)


def test_a_result_without_modes_keeps_its_shape(
    nothing_found: DensityModesResults, tmp_path: Path, mixture_reader: None
) -> None:
    nothing_found.save(tmp_path / "none.json")
    assert DensityModesResults.load(tmp_path / "none.json").modes.shape == (0, 2)


def test_the_surface_can_be_left_out(wages: DensityModesResults, tmp_path: Path) -> None:
    wages.save(tmp_path / "small.json", surface=False)
    back = DensityModesResults.load(tmp_path / "small.json")
    assert back.surface is None
    assert str(back.summary()) == str(wages.summary())
    with pytest.raises(InvalidArgument, match="without it"):
        back.predict(pd.DataFrame({"age": [30.0], "wage": [1e4]}), method="basin")


def test_a_surface_of_rows_is_neither_saved_nor_pickled(baseline: DensityModesResults) -> None:
    assert baseline.surface is not None
    assert baseline.to_dict()["surface"] is None
    assert pickle.loads(pickle.dumps(baseline)).surface is None
    assert copy.deepcopy(baseline).surface is baseline.surface


def test_rows_of_a_real_kernel_surface_stay_out(tmp_path: Path) -> None:
    rows = np.random.default_rng(5).normal(size=(200, 4)) + 17.123456
    surface = KernelSurface.from_points(rows, 0.8, 10.0, 24.0)
    modes = find_modes(surface, n_modes=1)
    result = DensityModesResults.from_modes(modes, surface)
    assert result.surface is surface
    stored = pickle.dumps(result)
    assert len(stored) < 8000
    assert rows[0].tobytes() not in stored
    result.save(tmp_path / "plain.json")
    assert DensityModesResults.load(tmp_path / "plain.json").n_modes == 1


def test_pickles_stay_frozen(wages: DensityModesResults) -> None:
    back = pickle.loads(pickle.dumps(wages))
    assert same(back, wages)
    assert back.surface is not None
    assert not back.mode_set.locations.flags.writeable
    assert not back.facts.lower.flags.writeable


def test_copies_are_the_same_object(wages: DensityModesResults) -> None:
    assert copy.copy(wages) is wages
    assert copy.deepcopy(wages) is wages


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a result"),
        ({"version": 2}, "version 2"),
        ({"kind": "clusters"}, "not 'density_modes'"),
        ({"modes": {}}, "damaged: KeyError"),
        ({"coordinates": 3}, "damaged: TypeError"),
        ({"warnings": None}, "damaged: TypeError"),
        ({"surface": {"type": "unheard of"}}, "unknown type"),
    ],
)
def test_damaged_dictionaries_are_refused(
    wages: DensityModesResults, change: dict[str, Any], message: str
) -> None:
    data = wages.to_dict(surface=False) | change
    with pytest.raises(SurfaceFileError, match=message):
        DensityModesResults.from_dict(data)


def test_arrays_of_the_wrong_length_are_refused(wages: DensityModesResults) -> None:
    data = wages.to_dict(surface=False)
    data["modes"]["locations"] = [[1.0], [2.0]]
    with pytest.raises(SurfaceFileError, match="damaged"):
        DensityModesResults.from_dict(data)


@pytest.mark.parametrize("text", ["", "not json", "[1, 2]", '{"format": "pydpmode results", "kind": "x"}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(SurfaceFileError, match=r"other\.json"):
        load_results(path)


def test_other_binary_files_are_refused(tmp_path: Path) -> None:
    for name in ("x.json", "x.json.gz"):
        (tmp_path / name).write_bytes(b"\xff\x00\x81")
        with pytest.raises(SurfaceFileError, match="not valid JSON"):
            load_results(tmp_path / name)


def test_a_missing_file_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_results(tmp_path / "nowhere.json")


def test_load_checks_the_family(wages: DensityModesResults, tmp_path: Path) -> None:
    class Other(DensityModesResults):
        kind = "other"

    wages.save(tmp_path / "r.json", surface=False)
    assert isinstance(Results.load(tmp_path / "r.json"), DensityModesResults)
    with pytest.raises(SurfaceFileError, match="not Other"):
        Other.load(tmp_path / "r.json")


def test_every_field_of_a_mode_set_is_saved() -> None:
    fields = {field.name for field in dataclasses.fields(ModeSet)}
    assert fields == {*results_module._MODE_SHAPES, "diagnostics"}
    kinds = {str(field.type) for field in dataclasses.fields(ModeSearchDiagnostics)}
    assert kinds <= {"int", "float", "bool", "tuple[int, ...]"}


def released(noise_scale: float = 2.0) -> ReleasedSurface:
    """Return a real released surface, its noise drawn here."""
    names = ("a", "b")
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(2, 3000)) + np.where(np.arange(3000) < 2000, 2.0, -2.0)
    design = LatticeDesign(names, np.full(2, -6.0), np.full(2, 6.0), np.full(2, 0.6), 2, 0.5)
    total, sums = feature_sums.feature_sum(design, np.ascontiguousarray(rows))
    root = np.sqrt(design.pair_weights)
    vector = np.concatenate([[math.sqrt(design.zero_weight) * total], root * sums.real, root * sums.imag])
    vector = vector + noise_scale * generator.normal(size=vector.size)
    privacy = PrivacySpent(
        epsilon=2.0,
        delta=1e-6,
        adjacency="replace",
        unit="row",
        mechanism="surface (discrete Gaussian)",
        sensitivity=1.42,
        noise_scale=noise_scale,
        n_units=3000,
        bounds={"a": (-6.0, 6.0), "b": (-6.0, 6.0)},
    )
    return ReleasedSurface.from_vector(design, vector, privacy)


def test_a_real_released_surface_goes_through_a_file(tmp_path: Path) -> None:
    surface = released()
    result = DensityModesResults.from_modes(find_modes(surface), surface, bandwidth_rule="given")
    assert result.n_modes == 2
    result.save(tmp_path / "real.json.gz")
    back = DensityModesResults.load(tmp_path / "real.json.gz")
    assert isinstance(back.surface, ReleasedSurface)
    np.testing.assert_array_equal(back.surface.vector, surface.vector)
    assert same(back, result)
    new = np.array([[2.0, 2.0], [-2.0, -2.0], [5.0, 5.0]])
    assert back.predict(new).tolist() == back.predict(new, method="basin").tolist() == [1, 2, 1]
    assert same(pickle.loads(pickle.dumps(result)), result)


# ------------------------------------------------------------------------------- predict


def test_nearest_mode_is_counted_in_bandwidths(wages: DensityModesResults) -> None:
    new = pd.DataFrame({"wage": [42000.0, 9000.0], "other": ["x", "y"], "age": [40.0, 57.0]}, index=[7, 3])
    labels = wages.predict(new)
    assert labels.to_dict() == {7: 1, 3: 2}
    assert labels.dtype == "Int64"
    assert labels.name == "mode"
    # Half-way in age; the bandwidths decide that a wage of 20,000 is nearer to the first.
    middle = (38.2134 + 57.81) / 2
    between = math.exp((10.66271 + 9.0831) / 2)
    near = wages.predict(pd.DataFrame({"age": [middle] * 2, "wage": [between * 1.01, between * 0.99]}))
    assert near.tolist() == [1, 2]


def test_coordinates_may_be_given_as_such(wages: DensityModesResults) -> None:
    new = pd.DataFrame({"log(wage)": [10.6, 9.0], "age": [40, 57]})
    assert wages.predict(new).tolist() == [1, 2]


def test_missing_values_give_missing_labels(wages: DensityModesResults) -> None:
    new = pd.DataFrame(
        {"age": pd.array([40, None, 57], dtype="Int64"), "wage": pd.array([4e4, 4e4, math.nan])}
    )
    assert wages.predict(new).isna().tolist() == [False, True, True]


def test_values_outside_the_box_count_as_at_its_boundary(wages: DensityModesResults) -> None:
    new = pd.DataFrame({"age": [math.inf, -math.inf, 40.0, 40.0], "wage": [1e9, 1e9, -5.0, 0.0]})
    at = pd.DataFrame({"age": [90.0, 15.0, 40.0, 40.0], "wage": [3e5, 3e5, 1e3, 1e3]})
    assert wages.predict(new).tolist() == wages.predict(at).tolist()
    assert wages.predict(new).notna().all()


def test_arrays_are_taken_in_order(wages: DensityModesResults, one_column: DensityModesResults) -> None:
    assert wages.predict(np.array([[40, 42000], [57, 9000]], dtype=np.int32)).tolist() == [1, 2]
    assert wages.predict([[40, 42000]]).tolist() == [1]
    assert one_column.predict([38.0, 89.0]).tolist() == [1, 2]
    assert one_column.predict(pd.Series([89.0], index=["r"], name="anything")).to_dict() == {"r": 2}


def test_other_frames_are_read(wages: DensityModesResults) -> None:
    polars = pytest.importorskip("polars")
    new = polars.DataFrame({"age": [40, 57], "wage": [42000.0, 9000.0]})
    assert wages.predict(new).tolist() == [1, 2]


def test_the_callers_data_are_not_changed(wages: DensityModesResults) -> None:
    array = np.array([[40.0, 42000.0], [math.nan, 1.0]])
    array.setflags(write=False)
    assert wages.predict(array).isna().tolist() == [False, True]
    frame = pd.DataFrame({"age": [40.0], "wage": [-1.0]})
    before = frame.copy()
    wages.predict(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_no_rows_and_no_modes(wages: DensityModesResults, nothing_found: DensityModesResults) -> None:
    empty = pd.DataFrame({"age": pd.Series(dtype=float), "wage": pd.Series(dtype=float)})
    assert wages.predict(empty).shape == (0,)
    assert wages.predict(np.empty((0, 2))).dtype == "Int64"
    assert nothing_found.predict([[40, 42000]]).isna().tolist() == [True]


def test_dates_and_durations_are_read(times: DensityModesResults) -> None:
    visits = pd.to_datetime(["2020-04-10", "2020-04-10", None])
    stay = pd.to_timedelta([4, None, 4], unit="D")
    for visit in (pd.Series(visits), pd.Series(visits).dt.tz_localize("Europe/Paris")):
        labels = times.predict(pd.DataFrame({"visit": visit, "stay": stay}))
        assert labels.isna().tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        (pd.DataFrame({"age": [1.0]}), UnknownColumn, "no column 'wage' \\(or 'log\\(wage\\)'\\)"),
        (
            pd.DataFrame([[1, 2, 3]], columns=["age", "wage", "age"]),
            DuplicateColumns,
            "2 columns named 'age'",
        ),
        (pd.DataFrame({"age": ["x"], "wage": [1.0]}), NonNumericColumn, "'age' must hold numbers"),
        (pd.DataFrame({"age": [1j], "wage": [1.0]}), NonNumericColumn, "complex"),
        (np.zeros((3, 3)), InvalidArgument, r"got shape \(3, 3\)"),
        (np.zeros(2), InvalidArgument, r"got shape \(2,\)"),
        ([[1.0, 2.0], [3.0]], UnsupportedSource, "rectangular"),
        (5.0, InvalidArgument, r"got shape \(\)"),
    ],
)
def test_unusable_data_are_refused(
    wages: DensityModesResults, new: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wages.predict(new)


def test_messages_never_show_a_value(wages: DensityModesResults) -> None:
    with pytest.raises(NonNumericColumn) as caught:
        wages.predict(pd.DataFrame({"age": ["secret-13.37"], "wage": [1.0]}))
    assert "secret" not in str(caught.value)


def test_numbers_are_no_dates(times: DensityModesResults) -> None:
    with pytest.raises(NonNumericColumn, match="dates and times"):
        times.predict(pd.DataFrame({"visit": [1.0], "stay": [1.0]}))


def test_unknown_methods_are_refused(wages: DensityModesResults) -> None:
    with pytest.raises(InvalidArgument, match="method"):
        wages.predict([[1, 2]], method="knn")  # type: ignore[arg-type]
