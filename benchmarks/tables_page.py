"""What docs/tables.md says: tables_template.md with its tables filled in from the CSVs.

`<<name argument>>` in the template is replaced by what the function of that name in `PARTS` returns. The CSVs
are those of benchmarks/results/ and benchmarks/paper/. Standard library only.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEMPLATE = HERE / "tables_template.md"
PAGE = HERE.parent / "docs" / "tables.md"
MISSING = "not run"
Row = dict[str, str]

# -- reading and writing cells --------------------------------------------------------------------------


def read(name: str) -> list[Row]:
    """Return the rows of `results/NAME.csv` or `paper/NAME.csv`; none where the file is not there."""
    path = HERE / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same(text: str, wanted: object) -> bool:
    """Return whether a cell holds a value: numbers by value, the rest by text."""
    try:
        return float(text) == float(str(wanted))
    except ValueError:
        return text == str(wanted)


def find(rows: Iterable[Row], **keys: object) -> Row | None:
    """Return the row with these values."""
    return next((r for r in rows if all(same(r[k], v) for k, v in keys.items())), None)


def number(text: str, digits: int = 3) -> str:
    """Return a number of a CSV with at most so many significant digits, and no digit that the CSV has not."""
    value = float(text)
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "none"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if "e" not in text.lower():
        places = min(places, len(text.partition(".")[2]))
    return f"{value:.{max(places, 0)}f}"


def figure(row: Row | None, name: str, error: str | None = None, digits: int = 3) -> str:
    """Return a value, with its standard error in brackets where the row has one."""
    if row is None or not row.get(name):
        return MISSING
    told = number(row[name], digits)
    spread = row.get(error or f"{name}_se", "")
    known = bool(spread) and math.isfinite(float(spread)) and told != "none"
    return f"{told} ({number(spread, 2)})" if known else told


def share(row: Row | None, name: str) -> str:
    """Return a share with two places."""
    if row is None or not row.get(name):
        return MISSING
    value = float(row[name])
    return f"{value:.2f}" if math.isfinite(value) else "none"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    shown = [f"| {' | '.join(line)} |" for line in (heads, *lines)]
    return "\n".join([shown[0], "|" + "---|" * len(heads), *shown[1:]])


def constant(script: str, name: str = "REPORTING_SEED") -> str:
    """Return a whole-number constant of a benchmark, as its source states it."""
    text = (HERE / script).read_text(encoding="utf-8")
    stated = re.search(rf"^(?:\w+, )*{name}\b[^=\n]*= (.+)$", text, re.MULTILINE)
    if stated is None:
        source = re.search(rf"^from (\w+) import (?:\([^)]*?|[^(\n]*)\b{name}\b", text, re.MULTILINE)
        if source is None:
            raise ValueError(f"{script} states no {name}")
        return constant(f"{source[1]}.py", name)
    names = [part.strip() for part in stated[0].split("=")[0].split(",")]
    return stated[1].split(",")[names.index(name)].replace("_", "").strip()


def made_by(command: str, source: str) -> str:
    """Return which command made the rows of a CSV, over how many runs, from which seed."""
    rows = read(f"results/{source}")
    script = command.split()[0]
    runs = sorted({int(r["runs"]) for r in rows if r.get("runs")}) or [int(constant(script, "RUNS"))]
    return (
        f"`python benchmarks/{command}`, {' or '.join(map(str, runs))} runs a cell, seed {constant(script)}"
    )


def cells(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Return (n, epsilon) of the rows in order, each once."""
    return list(dict.fromkeys((r.get("n", ""), r["epsilon"]) for r in rows))


# -- Tables 2 and 3: modes ------------------------------------------------------------------------------


PLAIN = ("mean_shift", "sklearn", "kms")


def mode_rows(density: str, n: str, epsilon: str) -> dict[str, Row | None]:
    """Return the rows of every method in one cell."""
    ours, grams = read("results/mode_peers"), read("results/grams_tables")
    keys: dict[str, object] = {"density": density, "n": n, "epsilon": epsilon}
    found = {m: find(ours, density=density, n=n, epsilon="", method=m) for m in PLAIN}
    found |= {m: find(ours, **keys, method=m) for m in ("ladder", "reference")}
    found |= {m: find(grams, **keys, method=m) for m in ("grams", "iterates", "published")}
    return found | {"coverage": find(read("results/coverage"), **keys)}


def modes(density: str) -> str:
    """Return the mean squared errors and exact counts."""
    heads = ["n", "epsilon", "paper: DP-GRAMS", "`surface`", "exact", "`grams`", "exact"]
    heads += ["paper: mean shift", "mean shift"]
    lines = []
    for paper in (r for r in read("paper/modes") if r["density"] == density):
        by = mode_rows(density, paper["n"], paper["epsilon"])
        line = [paper["n"], paper["epsilon"], figure(paper, "mse", "standard_error")]
        for method in ("ladder", "grams"):
            line += [figure(by[method], "mse"), share(by[method], "exact")]
        lines.append([*line, figure(paper, "mse_mean_shift"), figure(by["mean_shift"], "mse")])
    return table(heads, lines)


def modes_plain(density: str) -> str:
    """Return what mean shift finds without privacy, which does not depend on epsilon."""
    heads = ["n", "paper: mean shift", "mean shift", "exact", "scikit-learn", "exact", "`ks::kms`", "exact"]
    heads += ["s: paper", "s: mean shift", "s: scikit-learn", "s: `ks::kms`"]
    lines = []
    for n in dict.fromkeys(r["n"] for r in read("paper/modes")):
        paper = find(read("paper/modes"), density=density, n=n)
        rows = [find(read("results/mode_peers"), density=density, n=n, method=m) for m in PLAIN]
        line = [n, figure(paper, "mse_mean_shift")]
        line += [part for row in rows for part in (figure(row, "mse"), share(row, "exact"))]
        lines.append([*line, figure(paper, "seconds_mean_shift"), *(figure(r, "seconds") for r in rows)])
    return table(heads, lines)


def mode_variants(density: str) -> str:
    """Return variants, coverage and times."""
    heads = ["n", "epsilon", "`surface`, one bandwidth", "exact", "`grams`, paper's finish"]
    heads += ["published calibration", "95% interval covers", "reliable", "s: paper", "s: `surface`"]
    lines = []
    for paper in (r for r in read("paper/modes") if r["density"] == density):
        by = mode_rows(density, paper["n"], paper["epsilon"])
        line = [paper["n"], paper["epsilon"], figure(by["reference"], "mse"), share(by["reference"], "exact")]
        line += [figure(by[method], "mse") for method in ("iterates", "published")]
        line += [figure(by["coverage"], "marginal"), share(by["coverage"], "reliable")]
        lines.append([*line, figure(paper, "seconds"), figure(by["ladder"], "seconds")])
    return table(heads, lines)


def sweeps(density: str) -> str:
    """Return how the errors of `grams` move with its knobs; that nothing was run without a CSV."""
    rows = [r for r in read("results/grams_sweeps") if r["density"] == density]
    heads = ["knob", "value", "mean squared error", "exact", "missed", "s"]
    lines = [
        [r["knob"], r["value"], figure(r, "mse"), share(r, "exact"), share(r, "missed"), figure(r, "seconds")]
        for r in rows
    ]
    return table(heads, lines) if rows else "It was not run: no CSV."


def mode_count(density: str) -> str:
    """Return in how many cells `surface` is below the paper, and right about the number of modes."""
    paper = [r for r in read("paper/modes") if r["density"] == density]
    ladder = [mode_rows(density, r["n"], r["epsilon"])["ladder"] for r in paper]
    pairs = [(a, b) for a, b in zip(paper, ladder, strict=True) if b is not None]
    below = sum(float(b["mse"]) < float(a["mse"]) for a, b in pairs)
    exact = sum(float(b["exact"]) == 1 for _, b in pairs)
    both = sum(float(b["mse"]) < float(a["mse"]) and float(b["exact"]) == 1 for a, b in pairs)
    return (
        f"`surface` is below the paper's DP-GRAMS in {below} of {len(pairs)} cells, has the exact number of "
        f"modes in every run in {exact}, and both in {both}."
    )


# -- Tables 4 and 5: regression -------------------------------------------------------------------------


def regression(design: str) -> str:
    """Return the losses and times of modal regression."""
    heads = ["n", "epsilon", "paper: DP-PMS", "`surface`", "found", "silent", "certified", "found"]
    heads += ["paper: PMS", "plain", "found", "s: paper's DP-PMS", "s: `surface`"]
    lines = []
    for paper in (r for r in read("paper/regression") if r["design"] == design):
        at: dict[str, object] = {"n": paper["n"], "epsilon": paper["epsilon"]}
        ours = find(read("results/regression_tables"), design=design, **at)
        plain = find(read("results/pms_tables"), design=design.replace("_", " "), method="plain", **at)
        line = [paper["n"], paper["epsilon"], figure(paper, "loss"), figure(ours, "loss")]
        line += [figure(ours, "found"), share(ours, "silent")]
        line += [figure(ours, "certified_loss"), share(ours, "certified_found")]
        line += [figure(paper, "loss_pms"), figure(plain, "loss"), share(plain, "found")]
        lines.append([*line, figure(paper, "seconds"), figure(ours, "seconds")])
    return table(heads, lines)


def sound_pms(design: str) -> str:
    """Return the losses and times of DP-PMS made sound, and the times of the plain partial mean shift."""
    heads = ["n", "epsilon", "paper: DP-PMS", "`grams`", "found", "`grams`, public starts", "found"]
    heads += ["s: paper's DP-PMS", "s: `grams`", "s: public starts", "s: paper's PMS", "s: plain"]
    lines = []
    for paper in (r for r in read("paper/regression") if r["design"] == design):
        at: dict[str, object] = {"n": paper["n"], "epsilon": paper["epsilon"]}
        by = {
            method: find(read("results/pms_tables"), design=design.replace("_", " "), method=method, **at)
            for method in ("dap", "grid", "plain")
        }
        line = [paper["n"], paper["epsilon"], figure(paper, "loss")]
        for method in ("dap", "grid"):
            line += [figure(by[method], "loss"), figure(by[method], "found")]
        line += [figure(paper, "seconds"), *(figure(by[method], "seconds") for method in ("dap", "grid"))]
        lines.append([*line, figure(paper, "seconds_pms"), figure(by["plain"], "seconds")])
    return table(heads, lines)


def pms_sweeps(design: str) -> str:
    """Return how the losses of DP-PMS move with its knobs; that nothing was run without a CSV."""
    rows = [r for r in read("results/pms_sweeps") if r["design"] == design.replace("_", " ")]
    heads = ["knob", "value", "loss", "found", "s"]
    lines = [[r["knob"], r["value"], *(figure(r, m) for m in ("loss", "found", "seconds"))] for r in rows]
    return table(heads, lines) if rows else "It was not run: no CSV."


def regression_count(design: str) -> str:
    """Return in how many cells `surface` is below the paper."""
    paper = [r for r in read("paper/regression") if r["design"] == design]
    ours = read("results/regression_tables")
    rows = [find(ours, design=design, n=r["n"], epsilon=r["epsilon"]) for r in paper]
    pairs = [(a, b) for a, b in zip(paper, rows, strict=True) if b is not None]
    below = sum(float(b["loss"]) < float(a["loss"]) for a, b in pairs)
    return f"`surface` is below the paper's DP-PMS in {below} of {len(pairs)} cells."


def regions(design: str) -> str:
    """Return the coverage of prediction regions."""
    rows = [r for r in read("results/prediction_regions") if r["design"] == design]
    lines = [
        [r["n"], r["epsilon"], figure(r, "coverage"), figure(r, "length"), share(r, "blank")] for r in rows
    ]
    return table(["n", "epsilon", "coverage", "mean length", "blank"], lines)


def modal_lines() -> str:
    """Return errors and coverage of linear modal regression."""
    heads = ["errors", "n", "method", "epsilon", "rmse intercept", "covers", "rmse slope", "covers"]
    heads += ["unsmoothed"]
    lines = []
    for row in read("results/linear_modal"):
        if row["epsilon"] in ("", "1.0"):
            line = [row["design"], row["n"], row["method"], row["epsilon"] or "none"]
            for c in ("intercept", "slope"):
                covers = share(row, f"coverage_{c}") if row[f"coverage_{c}"] else "no interval"
                line += [figure(row, f"rmse_{c}"), covers]
            lines.append([*line, share(row, "unsmoothed") if row["unsmoothed"] else "no"])
    return table(heads, lines)


# -- Tables 6 to 9 and 1: clusters ----------------------------------------------------------------------

MEASURES = {
    "ari": "Adjusted Rand index",
    "nmi": "Normalised mutual information",
    "mse": "Mean squared error of the centres",
    "seconds": "Seconds",
}

CLUSTER_COLUMNS = (
    ("paper: DP-GRAMS-C", "DP-GRAMS-C", "paper"),
    ("`fit`", "fit", "ours"),
    ("`modes`", "modes", "ours"),
    ("paper: DP-k-means", "DP-k-Means", "paper"),
    ("diffprivlib", "dp_kmeans", "ours"),
    ("k-means", "kmeans", "ours"),
    ("mean shift", "mean_shift", "ours"),
    ("`ks::kms`", "kms", "ours"),
)


def clusters(name: str) -> str:
    """Return the tables of one data set, one for each measure; the paper's alone without others."""
    ours = read(f"results/clustering_{name}")
    paper = [r for r in read("paper/clusters") if r["table"] == name]
    if not ours:
        return paper_clusters(paper)
    places = cells(paper) or cells(r for r in ours if r["epsilon"])
    sized = any(n for n, _ in places)
    columns = {h: (m, source) for h, m, source in CLUSTER_COLUMNS if paper or source == "ours"}
    heads = ["n"] * sized + ["epsilon", *columns]
    out = []
    for measure, title in MEASURES.items():
        lines = []
        for n, epsilon in places:
            theirs = {r["method"]: r for r in paper if (r["n"], r["epsilon"]) == (n, epsilon)}
            rows = [r for r in ours if not sized or same(r["n"], n)]
            by = {r["method"]: r for r in rows if not r["epsilon"] or same(r["epsilon"], epsilon)}
            chosen = [(theirs if source == "paper" else by).get(m) for m, source in columns.values()]
            lines.append([n] * sized + [epsilon, *(figure(row, measure) for row in chosen)])
        out.append(f"**{title}**\n\n{table(heads, lines)}")
    return "\n\n".join(out)


def paper_clusters(rows: list[Row]) -> str:
    """Return the paper's figures alone, in one table; nothing without rows."""
    heads = ["epsilon", "method", *MEASURES.values()]
    lines = [[r["epsilon"], r["method"], *(figure(r, measure) for measure in MEASURES)] for r in rows]
    return table(heads, lines) if rows else ""


def cluster_sweeps() -> str:
    """Return how clusters by DP-GRAMS move with its knobs; that nothing was run without a CSV."""
    rows = read("results/cluster_sweeps")
    lines = [[r["knob"], r["value"], *(figure(r, measure) for measure in MEASURES)] for r in rows]
    return table(["knob", "value", *MEASURES.values()], lines) if rows else "It was not run: no CSV."


def clusters_made(name: str) -> str:
    """Return what made the table of a data set, or that nothing did."""
    source = f"clustering_{name}"
    if not read(f"results/{source}"):
        return "It was not run: no CSV."
    return f"Ours: {made_by(f'clustering_tables.py {name}', source)}."


def pipeline() -> str:
    """Return digits end to end."""
    heads = ["method", "epsilon", *list(MEASURES.values())[:2], "seconds"]
    lines = [
        [r["method"], r["epsilon"] or "none", *(figure(r, m) for m in ("ari", "nmi", "seconds"))]
        for r in read("results/private_pipeline")
    ]
    return table(heads, lines)


def one_run() -> str:
    """Return the paper's Table 1."""
    measures = list(MEASURES)[:3]
    lines = [
        [r["data"], r["method"], *(figure(r, m, digits=6) for m in measures)] for r in read("paper/one_run")
    ]
    return table(["data", "method", *(MEASURES[m] for m in measures)], lines)


# -- the page -------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[..., str]] = {
    part.__name__: part
    for part in (
        *(modes, modes_plain, mode_variants, mode_count, sweeps),
        *(regression, sound_pms, pms_sweeps, regression_count, regions, modal_lines),
        *(clusters, clusters_made, cluster_sweeps, pipeline, one_run),
    )
}


def fill(part: re.Match[str]) -> str:
    """Return what stands for one `<<name argument>>` or of the template."""
    name, _, rest = part[1].partition(" ")
    if name == "seed":
        return constant(rest)
    if name == "made":
        command, source = (text.strip() for text in rest.split("|"))
        return made_by(command, source)
    return PARTS[name](*rest.split())


def page() -> str:
    """Return docs/tables.md as the CSVs give it."""
    text = re.sub(r"<<([^>]+)>>", fill, TEMPLATE.read_text(encoding="utf-8"))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
