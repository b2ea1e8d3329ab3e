"""How the guarantee works, and where we differ from the paper: the Python side of guarantee.Rmd."""

import numpy as np

import pydpmode as dpm

points, _ = dpm.datasets.four_gaussians(3000, seed=1)
box = {"x": (-8, 8), "y": (-8, 8)}

res = dpm.DensityModes(points, ["x", "y"], bounds=box).fit(epsilon=1.0, delta=1e-6)
print(res.privacy.statement())
print("sensitivity", res.privacy.sensitivity, "noise scale", res.privacy.noise_scale)


# What one record does, beside the noise that hides it. A seed makes the noise reproducible (and the result
# NOT private): the difference of two releases with the same noise is the record's.
def one(table):
    """Return the density of x with the same noise each time."""
    model = dpm.DensityModes(table, ["x"], bounds={"x": (-8, 8)}, bandwidth=0.6)
    return model.fit(epsilon=1.0, delta=1e-6, seed=7).surface


moved = points.copy()
moved.loc[0, "x"] = -6.0 if points.loc[0, "x"] > 0 else 6.0
at = np.linspace(-8, 8, 400)[:, None]
before, after = one(points), one(moved)
change = np.abs(after.density(at) - before.density(at)).max()
print(f"largest change {change:.2g}, noise sd {before.noise_sd:.2g}")
assert change < before.noise_sd

# Everything after the release is free.
print(res.surface.at_bandwidth(np.array([1.2, 1.2])).noise_sd / res.surface.noise_sd)
print(dpm.DensityModes(res.surface, ["x"]).fit().modes)

# The published algorithm, made sound, at the same price.
climb = dpm.DensityModes(points, ["x", "y"], bounds=box, mechanism="grams", n_modes=4)
grams = climb.fit(epsilon=1.0, delta=1e-6)
print("privacy error, surface", res.std_errors["privacy"].mean(), "grams", grams.std_errors["privacy"].mean())
