"""From a DP-PMS release at public predictor values to the branches of a modal regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..budget import Budget
from ..errors import InvalidArgument
from ..numerics.branch_linking import link_peaks
from ..numerics.conditional_peaks import Peaks
from ..numerics.modal_branches import BranchSet, number_branches
from ..numerics.surfaces import FloatArray
from ..privacy.grams_options import GramsOptions
from ..privacy.pms_plan import PmsRequest
from ..privacy.private_data import PrivateData
from ..results.base_results import SurfaceFacts
from ..results.coordinates import Coordinate
from ..results.regression_results import ModalRegressionResults
from .pms_fit import PmsFit, fit_pms

_GAP = 2.0  # bandwidths of the response between linked modes of neighbouring grid values


def fit_pms_branches(
    study: PrivateData,
    coordinates: Sequence[Coordinate],
    public_predictors: ArrayLike,
    bandwidth: FloatArray,
    rule: str,
    budget: Budget,
    *,
    options: GramsOptions | None,
    rate: float,
    label: str,
    seed: int | None,
    warnings: Sequence[str],
) -> ModalRegressionResults:
    """Release DP-PMS (Algorithm 4 of the seed paper, made sound) and link its modes into branches.

    (epsilon, delta)-DP for replacing one RESPONSE, given public bounds and predictors. The grid is even over
    the predictor's public box, two bandwidths a cell; `certified` modes stand clear of the noise at `rate`
    per grid value.
    """
    if len(coordinates) != 2:
        raise InvalidArgument("mechanism='grams' takes one predictor; use mechanism='surface'")
    predictor, response = coordinates
    lower, upper = study.box(coordinates)
    cells = max(int(np.ceil((upper[0] - lower[0]) / (2 * bandwidth[0]))), 2)
    axis = np.asarray(lower[0] + (np.arange(cells) + 0.5) * (upper[0] - lower[0]) / cells)
    values = predictor.forward(np.asarray(public_predictors, dtype=np.float64).reshape(-1))
    request = PmsRequest(
        response=response,
        predictors=values[:, None],
        names=(predictor.name,),
        bandwidth=bandwidth,
        epsilon=budget.epsilon,
        delta=budget.delta,
        options=options or GramsOptions(),
        grid=axis[:, None],
    )
    fit = fit_pms(study, request, false_mode_rate=rate, label=label, seed=seed)
    facts = SurfaceFacts(lower, upper, bandwidth, 2, float(study.n_planning), float("nan"))
    return ModalRegressionResults(
        coordinates=tuple(coordinates),
        facts=facts,
        privacy=fit.released.privacy,
        bandwidth_rule=rule,
        warnings=tuple(warnings),
        label=label,
        response=1,
        branch_sets=(branches_of_modes(fit, axis, rate),),
        residual_scales=(float("nan"),),
    )


def branches_of_modes(fit: PmsFit, axis: FloatArray, rate: float) -> BranchSet:
    """Link the modes of neighbouring grid values; values without rows have none."""
    column, rows = [], []
    for x, found in zip(fit.released.grid[:, 0].tolist(), fit.modes, strict=True):
        place = int(np.argmin(np.abs(axis - x)))
        for j in np.argsort(found.locations[:, 0], kind="stable").tolist():
            column.append(place)
            rows.append(
                (
                    float(found.locations[j, 0]),
                    float(found.densities[j]),
                    float(found.covariance_privacy[j, 0, 0]),
                    float(found.covariance_sampling[j, 0, 0]),
                    float(found.height_z[j]),
                    float(found.mass[j]),
                    bool(found.significant[j]),
                )
            )
    point = np.array(column, dtype=np.int64)
    table = np.array(rows, dtype=np.float64).reshape(-1, 7)
    zeros = np.zeros(point.size)
    peaks = Peaks(point, point, table[:, 0], table[:, 1], zeros, zeros, zeros)
    branch = link_peaks(peaks, (axis.size,), _GAP * float(fit.released.bandwidth[-1]))
    return number_branches(
        BranchSet(
            axes=(axis,),
            branch=branch,
            point=point,
            estimate=table[:, 0],
            density=table[:, 1],
            curvature=np.full(point.size, np.nan),
            slope=np.zeros((point.size, 1)),
            variance_privacy=table[:, 2],
            variance_sampling=table[:, 3],
            snr=table[:, 4],
            mass=table[:, 5],
            certified=table[:, 6] > 0,
            total=np.ones(axis.size),
            false_branch_rate=rate,
        )
    )
