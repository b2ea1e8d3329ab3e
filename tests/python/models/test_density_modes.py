"""DensityModes: the whole way from a table to a result, on real and simulated data."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import pydpmode as dpm
from pydpmode import datasets, errors
from pydpmode.numerics.kernel_surface import KernelSurface

BOX = {"x": (-8.0, 8.0), "y": (-8.0, 8.0)}


@pytest.fixture(scope="module")
def four() -> pd.DataFrame:
    return datasets.four_gaussians(5000, seed=1)[0]


def fit(data, seed=1, epsilon=1.0, delta=1e-6, **options):
    return dpm.DensityModes(data, **options).fit(epsilon=epsilon, delta=delta, seed=seed)


def test_four_modes_are_found_with_honest_errors(four):
    res = fit(four, bounds=BOX)
    truth = np.array([[-3, -3], [-3, 3], [3, -3], [3, 3]], dtype=float)
    order = np.lexsort(res.modes.to_numpy().round().T[::-1])
    z = (res.modes.to_numpy()[order] - truth) / res.std_errors["total"].to_numpy().reshape(4, 2)[order]
    assert res.n_modes == 4
    assert np.abs(z).max() < 4
    assert res.mass.sum() == pytest.approx(1)
    assert res.mass.between(0.2, 0.3).all()
    assert res.reliable.all()


def test_a_real_release_is_marked_private_and_differs_between_runs(four):
    first, second = (dpm.DensityModes(four, bounds=BOX).fit(epsilon=1.0, delta=1e-6) for _ in range(2))
    assert not first.privacy.simulated
    assert "SIMULATED" not in first.summary().as_text()
    assert not np.array_equal(first.surface.vector, second.surface.vector)


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.01}, {"simulated": False, "mechanism": "surface (discrete Gaussian)"}]
)
def test_a_result_that_contradicts_its_surface_is_refused(four, change):
    res = fit(four, bounds=BOX)
    data = res.to_dict()
    assert type(res).from_dict(data).privacy.simulated
    data["privacy"] = data["privacy"] | change
    with pytest.raises(errors.SurfaceFileError, match="state different costs"):
        type(res).from_dict(data)


def test_a_seed_repeats_every_bit_and_is_marked_everywhere(four, tmp_path):
    first, second = fit(four, bounds=BOX), fit(four, bounds=BOX)
    assert np.array_equal(first.surface.vector, second.surface.vector)
    assert first.privacy.simulated
    text = first.summary().as_text().upper()
    assert "SIMULATED" in text
    assert "NOT PRIVATE" in text
    assert "SIMULATED" in repr(first.surface).upper()
    first.surface.save(tmp_path / "s.json")
    assert dpm.load_surface(tmp_path / "s.json").privacy.simulated


def test_standard_errors_against_repeated_releases(four):
    """Same rows, fresh noise: the spread of the modes is the privacy part of the standard error."""
    runs = [fit(four, seed=seed, bounds=BOX) for seed in range(60)]
    assert all(r.n_modes == 4 for r in runs)
    centres = np.array([[-3, -3], [-3, 3], [3, -3], [3, 3]])
    spread, stated = [], []
    for centre in centres:
        near = [int(np.argmin(np.linalg.norm(r.mode_set.locations - centre, axis=1))) for r in runs]
        spread.append([r.mode_set.locations[k] for r, k in zip(runs, near, strict=True)])
        stated.append([np.diag(r.mode_set.covariance_privacy[k]) for r, k in zip(runs, near, strict=True)])
    observed = np.var(np.array(spread), axis=1)
    expected = np.median(np.array(stated), axis=1)
    # 8 coordinates of 59 degrees of freedom each: the pooled ratio has standard error about .07.
    assert 0.6 < float(observed.mean() / expected.mean()) < 1.5


def test_sampling_errors_against_repeated_samples():
    """Fresh rows without noise: the spread of the modes is the sampling part."""
    found, stated = [], []
    for seed in range(150):
        x = np.random.default_rng(seed).normal(size=(3000, 1))
        surface = KernelSurface.from_points(x, 0.5, -6, 6)
        res = dpm.DensityModes(surface, n_modes=1).fit()
        found.append(res.mode_set.locations[0, 0])
        stated.append(res.mode_set.covariance_sampling[0, 0, 0])
    assert 0.7 < np.var(found) / np.median(stated) < 1.4


def test_columns_choose_and_order_the_coordinates(four):
    res = fit(four.assign(z=1.0), columns=["y", "x"], bounds={**BOX, "z": (0, 2)})
    assert res.columns == ("y", "x")
    assert fit(four, columns="x", bounds=BOX).columns == ("x",)


def test_a_one_dimensional_array_is_points_of_one_column():
    x = np.random.default_rng(0).normal(size=4000)
    res = fit(x, bounds=(-5, 5))
    assert res.n_modes == 1
    assert abs(res.modes.iloc[0, 0]) < 0.3


def test_log_scale_reports_both_scales():
    x = pd.DataFrame({"wage": np.exp(np.random.default_rng(0).normal(10, 0.5, 20_000))})
    res = fit(x, bounds={"wage": (1000, 300_000)}, log="wage")
    assert res.columns == ("log(wage)",)
    assert abs(res.modes.iloc[0, 0] - 10) < 0.1
    assert "-> wage" in res.summary().as_text()
    assert res.privacy.bounds == {"wage": (1000.0, 300_000.0)}


def test_a_zero_lower_bound_under_a_logarithm_is_raised_with_one_stored_warning():
    x = pd.DataFrame({"wage": np.exp(np.random.default_rng(0).normal(10, 0.5, 5000))})
    with pytest.warns(errors.RaisedLowerBound, match="300") as caught:
        res = fit(x, bounds={"wage": (0, 300_000)}, log="wage")
    assert len(caught) == 1
    assert any("300" in text for text in res.warnings)
    assert res.surface.lower[0] == pytest.approx(np.log(300))
    with pytest.raises(errors.InvalidBounds, match="logarithm"):
        fit(x, bounds={"wage": (-5, 300_000)}, log="wage")


def test_a_surface_is_fitted_again_at_no_cost(four, tmp_path):
    res = fit(four, bounds=BOX)
    loaded = dpm.load_surface(res.surface.save(tmp_path / "four.json.gz"))
    again = dpm.DensityModes(loaded).fit()
    pd.testing.assert_frame_equal(again.modes, res.modes)
    assert again.privacy == res.privacy
    one = dpm.DensityModes(loaded, ["x"]).fit()
    assert one.n_modes == 2
    wider = dpm.DensityModes(loaded, bandwidth=1.2 * res.surface.bandwidth).fit()
    assert wider.surface.bandwidth == pytest.approx(1.2 * res.surface.bandwidth)
    with pytest.raises(errors.InvalidArgument, match="costs nothing"):
        dpm.DensityModes(loaded).fit(epsilon=1.0)
    with pytest.raises(errors.InvalidArgument):
        dpm.DensityModes(loaded, bounds=BOX)
    with pytest.raises(errors.InvalidArgument, match="nothing to plan"):
        dpm.DensityModes(loaded).preview(epsilon=1.0, delta=1e-6)


def test_a_plain_surface_runs_through_the_same_code(four):
    surface = KernelSurface.from_points(four.to_numpy(), 0.8, -8, 8, columns=["x", "y"])
    res = dpm.DensityModes(surface).fit()
    assert res.n_modes == 4
    assert res.privacy is None
    assert (res.std_errors["privacy"] == 0).all()


def test_a_table_has_the_budget_of_its_first_fit(four):
    model = dpm.DensityModes(four, bounds=BOX)
    model.fit(epsilon=1.0, delta=1e-6, seed=1)
    with pytest.raises(errors.BudgetExceeded, match="epsilon"):
        model.fit(epsilon=1.0, delta=1e-6, seed=1)
    with pytest.raises(errors.BudgetExceeded):
        copy.deepcopy(model).fit(epsilon=1.0, delta=1e-6, seed=1)
    with pytest.raises(errors.PicklingRefused):
        pickle.dumps(model._study)


def test_a_study_composes_tightly(four, tmp_path):
    study = dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6), ledger=tmp_path / "l.jsonl")
    first = dpm.DensityModes(study, ["x"]).fit(epsilon=0.5, label="x alone", seed=1)
    dpm.DensityModes(study, ["x", "y"]).fit(epsilon=0.5, seed=2)
    table = study.ledger.table()
    assert first.label == "x alone"
    assert list(table["label"]) == ["x alone", "density modes of x, y"]
    assert table["sum"].iloc[-1] == pytest.approx(1.0)
    assert 0.70 < table["cumulative"].iloc[-1] < 0.75
    with pytest.raises(errors.BudgetExceeded):
        dpm.DensityModes(study).fit(epsilon=0.9, seed=3)
    assert len(study.ledger.entries()) == 2


def test_preview_reads_nothing_and_tells_the_noise(four):
    study = dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6))
    model = dpm.DensityModes(study)
    plan = model.preview(epsilon=1.0, delta=1e-6)
    res = model.fit(epsilon=1.0, delta=1e-6, seed=1)
    assert plan.density_noise_sd == pytest.approx(res.surface.noise_sd, rel=0.01)
    assert plan.total_noise_sd == pytest.approx(res.surface.total_sd)
    assert plan.n_values == res.surface.vector.size
    assert plan.fits
    assert not model.preview(epsilon=1.0, delta=1e-6).fits
    assert "nothing read, nothing charged" in str(plan)
    assert model.preview(epsilon=1.0, n=50_000).density_noise_sd < plan.density_noise_sd


@pytest.mark.parametrize("d", [4, 5])
def test_four_and_more_columns(d):
    generator = np.random.default_rng(d)
    centres = np.array([np.full(d, -2.0), np.full(d, 2.0)])
    x = centres[generator.integers(0, 2, 3000)] + generator.normal(size=(3000, d)) * 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.CoarseFeatures)
        res = fit(x, bounds=[(-5, 5)] * d, epsilon=2.0, n_features=2048)
    distance = np.linalg.norm(res.modes.to_numpy()[:, None] - centres, axis=2).min(axis=0)
    assert res.n_modes == 2
    assert distance.max() < 0.5


def test_add_remove_with_a_public_guess(four):
    study = dpm.PrivateData(
        four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6), adjacency="add_remove", n_guess=4000, n_max=10**6
    )
    res = dpm.DensityModes(study).fit(epsilon=1.0, seed=1)
    assert res.n_modes == 4
    assert res.privacy.n_units is None
    assert abs(res.surface.total - 5000) < 8 * res.surface.total_sd
    with pytest.raises(errors.InvalidArgument, match="n_guess"):
        dpm.DensityModes(
            dpm.PrivateData(four, bounds=BOX, budget=dpm.Budget(1.0, 1e-6), adjacency="add_remove")
        ).fit(epsilon=1.0)


def test_persons_are_one_vote_each():
    generator = np.random.default_rng(0)
    person = np.concatenate([np.arange(3000), np.zeros(9000, dtype=int)])
    x = np.concatenate([generator.normal(-2, 0.5, 3000), np.full(9000, 3.0)])
    data = pd.DataFrame({"x": x, "id": person})
    study = dpm.PrivateData(
        data, bounds={"x": (-5, 5)}, budget=dpm.Budget(1.0, 1e-6), unit="person", person="id"
    )
    assert study.n_units == 3000
    res = dpm.DensityModes(study).fit(epsilon=1.0, seed=1)
    # One person with 9,000 rows at 3 is one vote: no mode there.
    assert res.n_modes == 1
    assert abs(res.modes.iloc[0, 0] + 2) < 0.3
    assert res.privacy.unit == "person"


def test_weights_shift_the_density():
    generator = np.random.default_rng(0)
    x = np.concatenate([generator.normal(-2, 0.5, 3000), generator.normal(2, 0.5, 3000)])
    data = pd.DataFrame({"x": x, "w": np.where(x < 0, 1.0, 3.0)})
    study = dpm.PrivateData(
        data, bounds={"x": (-5, 5)}, budget=dpm.Budget(1.0, 1e-6), weights="w", max_weight=3.0
    )
    res = dpm.DensityModes(study).fit(epsilon=1.0, seed=1)
    assert res.n_modes == 2
    assert res.mass.iloc[0] == pytest.approx(0.75, abs=0.03)
    assert res.privacy.max_weight == 3.0


def test_low_signal_warns_once_and_is_stored():
    x = np.random.default_rng(0).uniform(-5, 5, 30)
    with pytest.warns(errors.LowSignal) as caught:
        res = fit(x, bounds=(-5, 5), epsilon=0.01, delta=1e-6)
    assert len(caught) == 1
    assert any("noise" in text for text in res.warnings)
    assert not res.reliable.any()


# -- ladders, private quartiles, planning -------------------------------------------------------------


def test_the_default_is_a_ladder_read_where_it_shows_the_most_modes(tmp_path):
    """Three narrow peaks in a box four times too wide: one bandwidth hides what the ladder shows."""
    rng = np.random.default_rng(5)
    x = pd.DataFrame({"x": np.repeat([-1.0, 0.0, 1.0], 2000) + rng.normal(0, 0.2, 6000)})
    assert fit(x, bounds={"x": (-8, 8)}, bandwidth="reference").n_modes == 1
    res = fit(x, bounds={"x": (-8, 8)})
    assert res.n_modes == 3
    np.testing.assert_allclose(np.sort(res.modes["x"]), [-1, 0, 1], atol=0.1)
    assert res.bandwidth_rule.startswith("ladder (public), read at 0.")
    assert res.bandwidth_rule in res.summary().as_text().replace("\n    ", " ")
    # Written and read again: the same release, the same choice, the same modes.
    again = dpm.DensityModes(dpm.load_surface(res.surface.save(tmp_path / "ladder.json"))).fit()
    pd.testing.assert_frame_equal(again.modes, res.modes)
    assert again.bandwidth_rule == "as released"


def test_a_ladder_released_once_may_be_read_at_any_of_its_bandwidths(four):
    res = fit(four, bounds=BOX)
    widest = res.surface.surface.design.bandwidth
    narrow = dpm.DensityModes(res.surface, bandwidth=list(widest / 3)).fit()
    np.testing.assert_allclose(narrow.surface.bandwidth, widest / 3)
    with pytest.raises(errors.InvalidArgument):
        dpm.DensityModes(res.surface, bandwidth=list(widest / 10)).fit()


def test_heaped_ages_make_no_false_modes():
    """Ages in whole years, every fifth heaped: the grid is seen; with the step stated, the floor holds."""
    rng = np.random.default_rng(11)
    age = rng.normal(45, 12, 60_000)
    heaped = rng.random(60_000) < 0.4
    ages = pd.DataFrame({"age": np.where(heaped, 5 * np.round(age / 5), np.round(age))})
    plain = fit(ages, bounds={"age": (0, 400)}, epsilon=5.0, bandwidth="ladder")
    assert plain.n_modes == 1
    res = fit(ages, bounds={"age": (0, 400)}, epsilon=5.0, resolution={"age": 5.0})
    assert res.n_modes == 1
    assert abs(res.modes["age"].iloc[0] - 45) < 2
    assert res.surface.bandwidth[0] >= 5.0
    assert min(res.surface.surface.design.scales) * res.surface.surface.design.bandwidth[0] >= 5.0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_next_to_no_records_report_no_mode_or_one_that_is_flagged(d):
    several = 0
    for seed in range(8):
        x = np.random.default_rng(seed).normal(size=(6, d))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.PydpmodeWarning)
            res = fit(x, bounds=[(-4, 4)] * d, epsilon=0.2, seed=seed)
        several += res.n_modes > 1
        assert not res.reliable.any()
    assert several <= 1


def test_the_private_rule_needs_no_bounds_that_fit(four):
    box = {"x": (-80, 80), "y": (-80, 80)}
    assert fit(four, bounds=box, bandwidth="reference").n_modes == 1
    res = fit(four, bounds=box, bandwidth="private", epsilon=2.0)
    assert res.n_modes == 4
    assert "quartiles, surface" in res.privacy.mechanism
    plan = dpm.DensityModes(four, bounds=BOX, bandwidth="private").preview(epsilon=1.0, delta=1e-6)
    assert "as if the bounds fitted" in plan.bandwidth_rule
    with pytest.raises(errors.InvalidArgument, match="is for surfaces"):
        dpm.DensityModes(four, bounds=BOX, bandwidth="private", mechanism="grams")


def test_preview_says_what_would_be_found_and_what_it_takes(four):
    model = dpm.DensityModes(four, bounds=BOX)
    plan = model.preview(epsilon=0.3, delta=1e-6, n=2000)
    table = plan.modes
    assert list(table.index) == [0.5, 0.25, 0.1, 0.05]
    assert table["found"].is_monotonic_decreasing
    assert table["epsilon for .9"].is_monotonic_increasing
    assert table["n for .9"].is_monotonic_increasing
    # What is said to be enough is.
    for share in (0.25, 0.1):
        enough = model.preview(epsilon=float(table.loc[share, "epsilon for .9"]), delta=1e-6, n=2000)
        assert enough.modes.loc[share, "found"] == pytest.approx(0.9, abs=0.03)
        more = model.preview(epsilon=0.3, delta=1e-6, n=int(table.loc[share, "n for .9"]))
        assert more.modes.loc[share, "found"] == pytest.approx(0.9, abs=0.03)


def test_preview_prints_dates_as_durations():
    days = pd.to_timedelta(np.random.default_rng(0).uniform(0, 300, 500), unit="D")
    table = pd.DataFrame({"when": pd.Timestamp("2024-01-01") + days})
    plan = dpm.DensityModes(table, bounds={"when": ("2024-01-01", "2024-12-31")}).preview(
        epsilon=1.0, delta=1e-6
    )
    text = str(plan)
    lines = text.splitlines()
    assert any(line.startswith("  bandwidth       when ") and " d (ladder" in line for line in lines)
    assert lines[-5].split()[:2] == ["share", "found"]
    assert lines[-4].split()[0] == "0.50"
    assert lines[-4].rstrip().endswith((" d", " h"))
    assert "e+0" not in text


def test_ages_in_whole_years_show_no_mode_at_every_year() -> None:
    """The packaged ages are whole years: a ladder without `resolution` must not read the comb."""
    wages = dpm.datasets.wages()
    model = dpm.DensityModes(wages, ["age"], bounds={"age": (15, 90), "wage": (0, 1)})
    result = model.fit(epsilon=1.0, delta=1e-6, seed=1)
    assert result.surface.bandwidth[0] >= 0.75
    assert result.mode_set.count <= 3
    narrow = dpm.DensityModes(wages, ["age"], bounds={"age": (15, 90)}, bandwidth=0.4)
    with pytest.warns(dpm.errors.HeapedValues, match="age: values stand on multiples of about 1,"):
        said = narrow.fit(epsilon=1.0, delta=1e-6, seed=1)
    assert any("multiples of about 1" in text for text in said.warnings)
