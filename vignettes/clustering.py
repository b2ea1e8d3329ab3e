"""Clusters, and what must be public before them: the Python side of clustering.Rmd."""

import warnings

import numpy as np
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

# Scales that are learned under privacy, and paid for.
wages = dpm.PrivateScaler(
    dpm.datasets.wages(), ["age", "wage"], bounds={"age": (15, 90), "wage": (1000, 300000)}, log="wage"
)
print(wages.fit(epsilon=0.2, delta=1e-6).summary())

# Many columns: centre, components and clusters under one epsilon, each step in the ledger.
random = np.random.default_rng(1)
profiles = np.array(
    [[30, 25, 60, 20, 55, 30, 45, 50], [60, 65, 30, 25, 40, 60, 45, 40], [40, 45, 45, 70, 20, 35, 65, 50]]
)
kind = random.choice(3, 6000, p=[0.5, 0.3, 0.2])
answers = np.clip(np.round(profiles[kind] + random.normal(0, 12, (6000, 8))), 0, 100)
table = pd.DataFrame(answers, columns=[f"item{j}" for j in range(1, 9)])
study = dpm.PrivateData(table, bounds=dict.fromkeys(table.columns, (0, 100)), budget=dpm.Budget(2.0, 1e-6))
groups = dpm.PrivateClusteringPipeline(study, n_components=2, n_clusters=3).fit(epsilon=1.0)
print(groups.summary())
print(study.ledger)
print(groups.centres.round(1))

# Bounds that are many times too wide: quartiles are released within the same epsilon.
wide = {"x": (-200, 200), "y": (-200, 200)}
for bandwidth in ("ladder", "private"):
    modes = dpm.DensityModes(points, ["x", "y"], bounds=wide, bandwidth=bandwidth)
    print(bandwidth, modes.fit(epsilon=1.0, delta=1e-6).n_modes)
