"""Modal regression, the typical wage at each age: the Python side of modal-regression.Rmd."""

import numpy as np
import pandas as pd

import pydpmode as dpm

model = dpm.ModalRegression.from_formula(
    "log(wage) ~ age",
    dpm.datasets.wages(),
    bounds={"age": (15, 90), "wage": (1000, 300_000)},
    resolution={"age": 1},
)
res = model.fit(epsilon=1.0, delta=1e-6)
print(res.summary())

# At an age, with an interval; where a new person's wage lies; and the mean. All from one release.
print(res.predict(pd.DataFrame({"age": [20, 30, 45, 60]}), certified_only=True))
print(res.predict_region(pd.DataFrame({"age": [20, 45]}), level=0.5))
print(res.mean_curve(pd.DataFrame({"age": [20, 30, 45, 60]})))

# Two curves at once.
curves, _ = dpm.datasets.sinusoid(2400, seed=1)
box = {"x": (0, 1), "y": (-1, 2.5)}
two = dpm.ModalRegression(curves, "y", "x", bounds=box).fit(epsilon=2.0, delta=1e-5)
print(two.predict(pd.DataFrame({"x": [0.5]})))

# A line that a second, smaller population does not pull at.
rng = np.random.default_rng(1)
x = rng.uniform(size=3000)
y = np.where(rng.uniform(size=3000) < 0.85, 1 + 2 * x, 3.5) + rng.normal(scale=0.2, size=3000)
table = pd.DataFrame({"x": x, "y": y})
line = dpm.ModalRegression(table, "y", "x", bounds={"x": (0, 1), "y": (0, 5)}, kind="linear")
print(line.fit(epsilon=1.0, delta=1e-5).params)

# Groups at the price of one: the levels are public.
curves["site"] = np.resize(["north", "south"], len(curves))
groups = dpm.ModalRegression(curves, "y", "x", bounds=box, by="site", levels=["north", "south"])
found = groups.fit(epsilon=2.0, delta=1e-5)
print(found.predict(pd.DataFrame({"x": 0.5, "site": ["north", "south"]})))
