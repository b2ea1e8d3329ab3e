"""Typical wages, privately: the Python side of getting-started.Rmd."""

import pydpmode as dpm

# Public knowledge: bounds, and that ages are whole years. Never taken from the rows.
wages = dpm.datasets.wages()
model = dpm.DensityModes(
    wages,
    ["age", "wage"],
    bounds={"age": (15, 90), "wage": (1000, 300_000)},
    log="wage",
    resolution={"age": 1},
)

# Cost and noise, in years and log dollars; reads no row.
print(model.preview(epsilon=1.0, delta=1e-6))

# One release of the whole density. The noise is fresh every time.
res = model.fit(epsilon=1.0, delta=1e-6)
print(res.summary())
print(res.modes_original)
print(res.std_errors)

# Further readings of the same release cost nothing.
print("thirties above 50,000:", res.surface.integrate([30, 10.82], [40, 12.61]))
print(dpm.DensityModes(res.surface, ["age"]).fit().modes)
print(res.surface.sample(5, seed=1))
