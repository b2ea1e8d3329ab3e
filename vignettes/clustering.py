"""Clusters, and what must be public before them: the Python side of clustering.Rmd."""

import warnings

import pandas as pd

import pydpmode as dpm

points, _ = dpm.datasets.four_gaussians(5000, seed=1)
box = {"x": (-8, 8), "y": (-8, 8)}

res = dpm.ModalClustering(points, ["x", "y"], bounds=box, n_clusters=4).fit(epsilon=1.0, delta=1e-6)
print(res.summary())
print(res.stability)

# How many? Clusters are added while the release shows more than noise.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dpm.errors.LowSignal)
    for epsilon in (0.02, 0.1, 1.0):
        found = dpm.ModalClustering(points, ["x", "y"], bounds=box).fit(epsilon=epsilon, delta=1e-6)
        print(epsilon, found.n_clusters)

# Peaks of the same surface, at no cost; and labels for new people.
print(dpm.ModalClustering(res.surface, centres="modes").fit().centres)
print(res.predict(pd.DataFrame({"x": [3.2, -2.5, 0.1], "y": [2.7, -3.1, 0.2]})))

# A public transformation is stated, and the statement stays with the result.
scaled = dpm.ModalClustering(
    points / 4,
    ["x", "y"],
    bounds={"x": (-2, 2), "y": (-2, 2)},
    n_clusters=4,
    public_transform="divided by 4, the norm of the 2015 survey",
)
print(scaled.fit(epsilon=1.0, delta=1e-6).privacy.notes)

# Bounds that are many times too wide: quartiles are released within the same epsilon.
wide = {"x": (-200, 200), "y": (-200, 200)}
for bandwidth in ("ladder", "private"):
    modes = dpm.DensityModes(points, ["x", "y"], bounds=wide, bandwidth=bandwidth)
    print(bandwidth, modes.fit(epsilon=1.0, delta=1e-6).n_modes)
