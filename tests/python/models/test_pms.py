"""DP-PMS end to end: one charge, the branches of the paper's designs, and curves between grid values."""

from __future__ import annotations

import json
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from pydpmode import Budget, ModalRegression, PrivateData, datasets, errors
from pydpmode.models.pms_fit import PmsFit, fit_pms, modes_of_traces
from pydpmode.numerics.evaluation import missed_branch_rate, oracle_modal_loss
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.privacy.pms_plan import PmsRequest
from pydpmode.results.released_partial_traces import ReleasedPartialTraces


def sinusoid_fit(
    n: int = 2400, epsilon: float = 2.0, starts: str = "dap", seed: int | None = 1, **options: object
) -> tuple[PmsFit, PrivateData, np.ndarray, datasets.ModalTruth]:
    table, truth = datasets.sinusoid(n, seed=11)
    x = table[["x"]].to_numpy()
    study = PrivateData(table[["y"]], bounds={"y": (-1.5, 3.0)}, budget=Budget(4.0, 1e-4))
    request = PmsRequest(
        response=study.coordinate("y"),
        predictors=x,
        names=("x",),
        bandwidth=(0.035, 0.22),
        epsilon=epsilon,
        delta=1e-5,
        options=GramsOptions(**options),
        starts=starts,
    )
    return fit_pms(study, request, seed=seed, label="branches"), study, x, truth


@pytest.mark.parametrize("starts", ["dap", "grid"])
def test_both_branches_of_the_sinusoid(starts: str) -> None:
    fit, study, x, truth = sinusoid_fit(starts=starts)
    found = fit.predict(x, significant_only=True)
    assert oracle_modal_loss(found, truth.at(x[:, 0])) < 0.012
    assert missed_branch_rate(found, truth.at(x[:, 0]), radius=0.3) < 0.1
    told = fit.released.privacy
    assert (told.epsilon, told.delta) == (2.0, 1e-5)
    # At the budget's larger delta the same release costs a smaller epsilon.
    assert 1.5 < study.ledger.spent() <= 2.0
    assert told.mechanism.startswith("pms (pld, correlated")
    assert told.simulated
    assert any("predictors are public" in note for note in told.notes)
    assert list(told.bounds) == ["y"]


def test_standard_errors_are_of_the_size_of_the_errors() -> None:
    fit, _, _, truth = sinusoid_fit(starts="grid", epsilon=4.0)
    table = fit.frame()
    at = truth.at(table["x"].to_numpy())
    apart = np.abs(at - table["estimate"].to_numpy()[:, None]).min(axis=1)
    total = np.sqrt(table["se_privacy"] ** 2 + table["se_sampling"] ** 2)
    assert np.all(total > 0)
    assert np.median(apart) < 3 * np.median(total)


def test_the_published_calibration_runs_with_scores_alone() -> None:
    fit, _, _, _ = sinusoid_fit(n=300, accountant="published", noise="independent", k=2, T=3)
    assert fit.released.finish == "iterates"
    assert np.isnan(fit.released.traces[0].densities).all()
    assert all(m.count >= 1 for m in fit.modes)


def test_minibatches_by_renyi_accounting() -> None:
    fit, _, _, _ = sinusoid_fit(n=400, accountant="rdp", m=100, T=2)
    trace = fit.released.traces[0]
    assert trace.batch == pytest.approx(trace.records / 4)


def test_real_noise_charges_once_and_differs_between_runs() -> None:
    one, study, _, _ = sinusoid_fit(n=200, seed=None, T=1, k=4)
    two = fit_pms(
        study,
        PmsRequest(
            response=study.coordinate("y"),
            predictors=np.linspace(0, 1, 200)[:, None],
            names=("x",),
            bandwidth=(0.1, 0.5),
            epsilon=1.0,
            delta=1e-5,
        ),
    )
    assert not one.released.privacy.simulated
    assert len(study.ledger.entries()) == 2
    assert one.released.traces[0].densities[0, 0] != two.released.traces[0].densities[0, 0]


def test_refused_before_anything_is_charged() -> None:
    table, _ = datasets.sinusoid(100, seed=1)
    study = PrivateData(table[["y"]], bounds={"y": (-1.5, 3.0)}, budget=Budget(1.0, 1e-4))
    common = {"response": study.coordinate("y"), "names": ("x",), "delta": 1e-5}
    x = table[["x"]].to_numpy()
    with pytest.raises(errors.InvalidArgument, match="one public row per record"):
        fit_pms(study, PmsRequest(predictors=x[:-1], bandwidth=(0.1, 0.3), epsilon=0.5, **common))
    with pytest.raises(errors.InvalidArgument, match="bandwidth"):
        fit_pms(study, PmsRequest(predictors=x, bandwidth=(0.1,), epsilon=0.5, **common))
    with pytest.raises(errors.BudgetExceeded):
        fit_pms(study, PmsRequest(predictors=x, bandwidth=(0.1, 0.3), epsilon=2.0, **common))
    with pytest.raises(errors.InvalidBudget):
        fit_pms(study, PmsRequest(predictors=x, bandwidth=(0.1, 0.3), epsilon=0.0, **common))
    request = PmsRequest(predictors=x, bandwidth=(0.1, 0.3), epsilon=0.5, **common)
    with pytest.raises(errors.InvalidArgument, match="notes"):
        fit_pms(study, request, notes="one text")
    assert study.ledger.spent() == 0
    private_n = PrivateData(
        table[["y"]], bounds={"y": (-1.5, 3.0)}, budget=Budget(1.0, 1e-4), adjacency="add_remove"
    )
    with pytest.raises(errors.InvalidArgument, match="replace"):
        fit_pms(private_n, request)


def test_curves_between_grid_values() -> None:
    fit, _, _, _ = sinusoid_fit(starts="grid", epsilon=4.0)
    grid = fit.released.grid[:, 0]
    a, b = fit.modes[3].locations[:, 0], fit.modes[4].locations[:, 0]
    middle = np.sort(fit.predict([(grid[3] + grid[4]) / 2])[0])
    assert (a.size, b.size) == (2, 2)
    np.testing.assert_allclose(middle[:2], (np.sort(a) + np.sort(b)) / 2)
    at = np.sort(fit.predict(grid[3:4])[0])
    np.testing.assert_allclose(at[np.isfinite(at)], np.sort(a))
    assert np.isnan(fit.predict([5.0, np.nan])).all()
    assert fit.predict(np.empty((0, 1))).shape == (0, 1)
    with pytest.raises(errors.InvalidArgument, match="one column per predictor"):
        fit.predict(np.zeros((2, 2)))


def test_two_predictors() -> None:
    generator = np.random.default_rng(5)
    x = generator.uniform(size=(2000, 2))
    y = 1 + x[:, 0] - x[:, 1] + 0.2 * generator.standard_normal(2000)
    study = PrivateData(y, bounds=[(-2.0, 4.0)], budget=Budget(4.0, 1e-4))
    request = PmsRequest(
        response=study.coordinate("x1"),
        predictors=x,
        names=("a", "b"),
        bandwidth=(0.2, 0.2, 0.35),
        epsilon=3.0,
        delta=1e-5,
    )
    fit = fit_pms(study, request, seed=2)
    queries = np.array([[0.3, 0.6], [0.8, 0.2]])
    np.testing.assert_allclose(fit.predict(queries)[:, 0], 1 + queries[:, 0] - queries[:, 1], atol=0.35)
    assert np.isnan(fit.predict([[9.0, 9.0]])).all()


def test_a_release_survives_json() -> None:
    fit, _, _, _ = sinusoid_fit(n=200, T=2, k=3)

    def plain(value: object) -> object:
        return value.tolist() if isinstance(value, np.ndarray) else value

    text = json.dumps(fit.released.to_dict(), default=plain)
    again = modes_of_traces(ReleasedPartialTraces.from_dict(json.loads(text)))
    np.testing.assert_array_equal(again.frame()["estimate"], fit.frame()["estimate"])
    assert again.released.privacy == fit.released.privacy


@pytest.mark.filterwarnings("ignore::pydpmode.errors.PydpmodeWarning")
def test_shares_are_unknown_and_the_picture_needs_no_surface() -> None:
    table, _ = datasets.sinusoid(1200, seed=11)
    study = PrivateData(table, bounds={"x": (0, 1), "y": (-1.5, 3.0)}, budget=Budget(4.0, 1e-4))
    model = ModalRegression(study, "y", "x", mechanism="grams", public_predictors=table["x"].to_numpy())
    result = model.fit(epsilon=4.0, seed=1)
    assert result.branches["share"].isna().all()
    assert result.mass.isna().all()
    rows = [line.split() for line in result.summary().as_text().splitlines() if line.split()[-1:] == ["yes"]]
    assert len(rows) == 2
    assert all("--" in row for row in rows)
    assert not np.isnan(result.predict({"x": [0.5]})["estimate"]).any()
    # What is said to be protected is the response, wherever it is said.
    assert "replacing one response" in result.summary().as_text()
    assert "replace one response" in repr(result)
    assert "one row" not in result.summary().as_text() + repr(result)
    assert replace(result.privacy, simulated=False).statement().endswith("predictors are not protected.")
    drawn = result.plot()
    assert len(drawn.lines) == 2
    plt.close(drawn.figure)
