"""Planning a privacy budget over a study: the Python side of planning-a-budget.Rmd."""

import tempfile
from pathlib import Path

import pydpmode as dpm

with tempfile.TemporaryDirectory() as folder:
    study = dpm.PrivateData(
        dpm.datasets.wages(),
        bounds={"age": (15, 90), "wage": (1000, 300_000)},
        budget=dpm.Budget(1.0, 1e-6),
        ledger=Path(folder) / "study.jsonl",
    )

    # How much does a question need? A preview charges nothing.
    age = dpm.DensityModes(study, ["age"], resolution={"age": 1})
    both = dpm.DensityModes(study, ["age", "wage"], log="wage", resolution={"age": 1})
    print(both.preview(epsilon=0.3, n=5000))

    # Every release is charged before the first row is read.
    age.fit(epsilon=0.3, label="age")
    joint = both.fit(epsilon=0.6, label="age by wage")
    print(study.ledger)

    # What does not fit is refused, and the ledger stays as it is.
    try:
        dpm.DensityModes(study, ["wage"], log="wage").fit(epsilon=0.9, label="wage")
    except dpm.errors.BudgetExceeded as problem:
        print(problem)

    # The wage alone was already paid for: it is a marginal of the joint release.
    print(dpm.DensityModes(joint.surface, ["log(wage)"]).fit().modes_original)

# Partners without a common ledger divide the budget beforehand.
print(dpm.Budget(1.0, 1e-6).split(1, 1, 2))
