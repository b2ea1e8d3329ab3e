"""The public bandwidth rule of modal regression. Reads no row.

Predictors and response need different bandwidths: along the predictors a branch is nearly straight and one
may smooth much where there is little signal; along the response the modes must stay apart.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import InvalidArgument
from .surfaces import FloatArray

# Shares of the box width, for m records in noise units; set on the tuning seed of
# benchmarks/regression_tables.py. Predictors: `.65 m^(-1/(p+1))` while noise dominates, then the slower rate
# for curves; response: `.18 m^(-1/5)`, then the rate for a mode, `.127 m^(-1/7)`.
_NOISE_SHARE, _CURVE_SHARE, _WIDEST = 0.65, 0.08, 0.5
_RESPONSE_SHARE, _MODE_SHARE, _RESPONSE_LIMITS = 0.18, 0.127, (0.02, 0.2)
# Records beyond which sampling, and no longer the privacy noise, sets the bandwidth: n over this.
_SAMPLING = 1.4


def noise_units(n: float, mu: float | None) -> float:
    """Return the number of records in units of the noise, `m_e = (m^-2 + (1.4/n)^2)^(-1/2)`.

    Parameters
    ----------
    n : float
        Public number of records.
    mu : float or None
        Sensitivity over noise scale of a Gaussian mechanism that meets (epsilon, delta); `m = n mu / sqrt 2`.
        None without noise.
    """
    privacy = 0.0 if mu is None else math.sqrt(2) / (n * mu)
    return 1 / math.hypot(privacy, _SAMPLING / n)


def regression_bandwidth(lower: FloatArray, upper: FloatArray, *, n: float, mu: float | None) -> FloatArray:
    """Return the bandwidth of each predictor and, last, of the response.

    With m = `noise_units` and p predictors: `width * min(.5, max(.65 m^(-1/(p+1)), .08 m^(-1/6)))` for a
    predictor, `width * clip(max(.18 m^(-1/5), .127 m^(-1/7)), .02, .2)` for the response.

    Parameters
    ----------
    lower, upper : (p + 1,) arrays
        The public box, response last.
    n, mu
        As in `noise_units`.
    """
    if not (math.isfinite(n) and n >= 1):
        raise InvalidArgument(f"the bandwidth rule needs a public number of records >= 1, got {n!r}")
    m = noise_units(n, mu)
    p = lower.size - 1
    predictor = min(_WIDEST, max(_NOISE_SHARE * m ** (-1 / (p + 1)), _CURVE_SHARE * m ** (-1 / 6)))
    response = max(_RESPONSE_SHARE * m**-0.2, _MODE_SHARE * m ** (-1 / 7))
    response = min(max(response, _RESPONSE_LIMITS[0]), _RESPONSE_LIMITS[1])
    return np.asarray((upper - lower) * np.array([predictor] * p + [response]))
