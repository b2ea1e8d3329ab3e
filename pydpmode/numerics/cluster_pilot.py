"""Where all the data lie, from the release itself: one Gaussian with a full covariance fitted to the sketch.

It places trial centres, scales the prior of the centres and turns the axes, so that neither wide bounds nor
correlated columns cost much. Post-processing of the release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .cluster_sketch import ClusterSketch
from .mode_set import IntArray
from .surfaces import FloatArray

_STEPS, _TRIALS = 40, 6
_MASS_SD = 0.02  # the Gaussian stands for all records: otherwise it would settle on one cluster
_SMALL_GAIN = 0.02
_TAPER = 0.7  # smoothing, in public spreads
_MIDDLE_FREEDOM = 1.5  # spread of the mean about the middle of the box, in public spreads
_LOG_FREEDOM = 0.7  # of the covariance, relative to the public one
# Log-ratios put down to the data not being Gaussian: of the axes to each other, and to the box.
_SAME_SHAPE, _SAME_SCALE = 0.5, 0.25


@dataclass(frozen=True)
class _State:
    weight: float
    mean: FloatArray
    covariance: FloatArray


def pilot(sketch: ClusterSketch, shares: FloatArray) -> tuple[ClusterSketch, FloatArray, FloatArray]:
    """Return the sketch turned to the data's axes, and the data's mean and spread there.

    Parameters
    ----------
    sketch : ClusterSketch
    shares : (d,) array
        Public guess of the standard deviations, in working units.

    Returns
    -------
    sketch : ClusterSketch
        In coordinates along the eigenvectors of the fitted covariance.
    mean, spread : (d,) arrays
        In those coordinates. Spreads along the axes differ only where the fit says so clearly.
    """
    state = _fit(_tapered(sketch.cropped(_TAPER * shares), _TAPER * shares), shares)
    typical = float(np.mean(shares**2))
    values, vectors = np.linalg.eigh(state.covariance / typical)
    log_spread = 0.5 * np.log(values)
    overall = float(log_spread.mean())
    away = _beyond(log_spread - overall, _SAME_SHAPE)
    spread = np.sqrt(typical) * np.exp(_beyond(np.array(overall), _SAME_SCALE) + away)
    turned = sketch.turned(vectors)
    return turned, state.mean @ vectors, spread


def _tapered(sketch: ClusterSketch, widths: FloatArray) -> ClusterSketch:
    """Return the sketch of the data smoothed once more, so that separate clusters run into one."""
    taper = np.exp(-0.5 * (widths**2 @ sketch.squares))
    return replace(sketch, target=sketch.target * taper, root=sketch.root * taper)


def _beyond(values: FloatArray, most: float) -> FloatArray:
    """Return by how much the values are beyond what is put down to the data not being Gaussian."""
    return np.asarray(np.sign(values) * np.maximum(np.abs(values) - most, 0.0))


def _fit(sketch: ClusterSketch, shares: FloatArray) -> _State:
    state = _State(1.0, sketch.middle, np.diag(shares**2))
    residual, image = _residual(sketch, state)
    now = _objective(sketch, shares, state, residual)
    damping = 1e-2
    for _ in range(_STEPS):
        jacobian = _jacobian(sketch, state, image)
        normal, pull = _normal(sketch, shares, state, jacobian)
        slope = jacobian @ residual.ravel() - pull
        scale = np.diag(normal).copy()
        for _ in range(_TRIALS):
            step = np.asarray(np.linalg.solve(normal + np.diag(damping * scale + 1e-12), slope))
            trial = _moved(sketch, shares, state, step)
            trial_residual, trial_image = _residual(sketch, trial)
            then = _objective(sketch, shares, trial, trial_residual)
            if then <= now:
                break
            damping *= 8
        else:
            break
        gain, now = now - then, then
        state, residual, image = trial, trial_residual, trial_image
        damping = max(damping / 8, 1e-7)
        if gain < _SMALL_GAIN:
            break
    return state


def _pairs(d: int) -> tuple[IntArray, IntArray]:
    return np.triu_indices(d)


def _residual(sketch: ClusterSketch, state: _State) -> tuple[FloatArray, FloatArray]:
    w = sketch.frequencies
    fade = np.exp(-0.5 * np.sum(w * (state.covariance @ w), axis=0)) * sketch.root
    phase = state.mean @ w
    image = np.stack([np.cos(phase) * fade, np.sin(phase) * fade])
    return sketch.target - state.weight * image, image


def _jacobian(sketch: ClusterSketch, state: _State, image: FloatArray) -> FloatArray:
    """Return the derivatives (P, 2M): weight, mean, upper triangle of the covariance."""
    w, d = sketch.frequencies, sketch.dimension
    rows, columns = _pairs(d)
    out = np.empty((1 + d + rows.size, 2, sketch.root.size))
    out[0] = image
    model = state.weight * image
    out[1 : 1 + d] = np.stack([-model[1], model[0]]) * w[:, None, :]
    factor = np.where(rows == columns, -0.5, -1.0)
    out[1 + d :] = model * (factor[:, None] * w[rows] * w[columns])[:, None, :]
    return out.reshape(out.shape[0], -1)


def _away(shares: FloatArray, state: _State) -> FloatArray:
    rows, columns = _pairs(shares.size)
    target = np.where(rows == columns, shares[rows] ** 2, 0.0)
    return np.asarray(state.covariance[rows, columns] - target)


def _precisions(shares: FloatArray) -> FloatArray:
    rows, columns = _pairs(shares.size)
    sd = 2 * _LOG_FREEDOM * shares[rows] * shares[columns]
    return np.asarray(np.concatenate([[_MASS_SD**-2], 1 / (_MIDDLE_FREEDOM * shares) ** 2, sd**-2]))


def _offsets(sketch: ClusterSketch, shares: FloatArray, state: _State) -> FloatArray:
    return np.concatenate([[state.weight - 1], state.mean - sketch.middle, _away(shares, state)])


def _normal(
    sketch: ClusterSketch, shares: FloatArray, state: _State, jacobian: FloatArray
) -> tuple[FloatArray, FloatArray]:
    precision = _precisions(shares)
    return jacobian @ jacobian.T + np.diag(precision), precision * _offsets(sketch, shares, state)


def _objective(sketch: ClusterSketch, shares: FloatArray, state: _State, residual: FloatArray) -> float:
    flat, offsets = residual.ravel(), _offsets(sketch, shares, state)
    return 0.5 * float(flat @ flat) + 0.5 * float(_precisions(shares) @ offsets**2)


def _moved(sketch: ClusterSketch, shares: FloatArray, state: _State, step: FloatArray) -> _State:
    d = shares.size
    rows, columns = _pairs(d)
    change = np.zeros((d, d))
    change[rows, columns] = step[1 + d :]
    change[columns, rows] = step[1 + d :]
    values, vectors = np.linalg.eigh(state.covariance + change)
    typical = float(np.mean(shares**2))
    values = np.clip(values, 0.01 * typical, 9.0 * typical)
    mean = sketch.inside((state.mean + np.clip(step[1 : 1 + d], -shares, shares))[None])[0]
    return _State(max(state.weight + float(step[0]), 0.05), mean, vectors * values @ vectors.T)
