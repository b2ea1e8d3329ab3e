"""Summaries as statsmodels tables: the same contents as text, HTML, LaTeX and CSV.

Imported when a summary is asked for, because statsmodels takes half a second to load.
"""

from __future__ import annotations

import csv
import html
import io
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import MissingDependency
from .number_text import MISSING, ValueText, limits_text, plain, shorten, spread_text, value_text
from .trace_summary import trace_doubts, trace_error_note, trace_facts

try:
    from statsmodels.iolib.summary import Summary
    from statsmodels.iolib.table import SimpleTable
except ImportError as error:  # pragma: no cover - statsmodels is a dependency
    raise MissingDependency(
        "summary() needs statsmodels: pip install statsmodels. "
        "Without it, .modes, .std_errors and .conf_int() hold the same numbers"
    ) from error

if TYPE_CHECKING:
    import pandas as pd

    from ..budget import PrivacySpent
    from .base_results import Results
    from .results import DensityModesResults

MIN_WIDTH = 84
NAME_WIDTH = 24
LEFT_WIDTH, RIGHT_WIDTH = 26, 29  # of the facts beside their labels: what keeps to 100 characters
DOUBTFUL = "?"
_ARROW = "->"
_CLEAR_CURVATURE = 5.0

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",  # a bare one after a line break would be read as an option
    }
)


# ---------------------------------------------------------------- blocks, and how they print


@dataclass(frozen=True)
class Block:
    """One rectangular part of a summary: rows of text, the same number of cells in each.

    Parameters
    ----------
    rows : list of rows
        The cells.
    aligns : str
        "l", "r" or "c" per column.
    headers : tuple of str
        Column headers; none when empty.
    pairs : bool
        Whether the columns are label, value, label, value: then the values take up spare width.
    """

    rows: list[list[str]]
    aligns: str
    headers: tuple[str, ...] = ()
    pairs: bool = False

    def separators(self) -> list[int]:
        """Spaces in front of each column."""
        if self.pairs:
            return [0, 1, 4, 1]
        return [0] + [2] * (len(self.aligns) - 1)

    def widths(self) -> list[int]:
        """Width of each column's text."""
        every = [*self.rows, list(self.headers)] if self.headers else self.rows
        return [max(len(shorten(row[j], _LONGEST)) for row in every) for j in range(len(self.aligns))]

    def width(self) -> int:
        """Characters that a row needs."""
        return sum(self.widths()) + sum(self.separators())

    def table(self, width: int, title: str) -> SimpleTable:
        """Return a statsmodels table whose text is `width` characters wide."""
        widths = self.stretched(width)
        gaps = self.separators()
        columns = range(len(self.aligns))
        headers = None
        if self.headers:
            headers = [
                " " * gaps[j] + (h.ljust(widths[j]) if self.aligns[j] == "l" else h)
                for j, h in enumerate(self.headers)
            ]
        return SimpleTable(
            self.rows,
            headers=headers,
            title=title,
            datatypes=list(columns),
            data_aligns=self.aligns,
            txt_fmt={
                "data_fmts": [_text_cell(gaps[j]) for j in columns],
                "colwidths": [w + g for w, g in zip(widths, gaps, strict=True)],
                "colsep": "",
                "header_align": "r",
                "table_dec_below": "=",
            },
            html_fmt={
                "data_fmts": [_html_cell(a) for a in self.aligns],
                "header_fmt": "<th>%s</th>",
            },
        )

    def latex(self) -> str:
        """Return one tabular: statsmodels would put the headers into a tabular of their own."""
        head = [" & ".join(rf"\textbf{{{_latex_cell(h)}}}" for h in self.headers) + r" \\", r"\midrule"]
        body = [" & ".join(map(_latex_cell, row)) + r" \\" for row in self.rows]
        lines = [r"\toprule", *(head if self.headers else []), *body, r"\bottomrule"]
        return "\n".join([rf"\begin{{tabular}}{{{self.aligns}}}", *lines, r"\end{tabular}"])

    def stretched(self, width: int) -> list[int]:
        """Column widths with the spare width of a row shared out."""
        widths = self.widths()
        takers = [1, 3] if self.pairs else list(range(1, len(widths))) or [0]
        spare = max(width - self.width(), 0)
        for position, j in enumerate(takers):
            widths[j] += spare // len(takers) + (position < spare % len(takers))
        return widths


_LONGEST = 76


def _text_cell(gap: int) -> Callable[[str], str]:
    return lambda text: " " * gap + shorten(text, _LONGEST)


def _html_cell(align: str) -> Callable[[str], str]:
    side = {"l": "left", "r": "right", "c": "center"}[align]
    return lambda text: f'<td style="text-align: {side}">{html.escape(text)}</td>'


def _latex_cell(text: str) -> str:
    return text.translate(_LATEX)


class ReleaseSummary(Summary):  # type: ignore[misc]  # statsmodels has no type stubs
    """A statsmodels `Summary` that escapes names in HTML and LaTeX and quotes them in CSV."""

    def __init__(self, title: str, blocks: Sequence[Block], notes: Sequence[str]) -> None:
        super().__init__()
        width = max([MIN_WIDTH, *(block.width() for block in blocks)])
        self.tables = [block.table(width, title if i == 0 else "") for i, block in enumerate(blocks)]
        self.blocks, self.title, self.notes = tuple(blocks), title, tuple(notes)
        self.add_extra_txt(["Notes:", *_wrapped(notes, width)])

    def __repr__(self) -> str:
        return self.as_text()

    def as_text(self) -> str:
        """Return the summary as plain text, without blanks at the ends of lines."""
        text: str = super().as_text()
        return "\n".join(line.rstrip() for line in text.split("\n"))

    def as_html(self) -> str:
        """Return the summary as HTML tables, followed by the notes."""
        items = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        tables = "\n".join(table.as_html() for table in self.tables)
        return f'{tables}\n<div class="notes">Notes:<ol>{items}</ol></div>'

    def as_latex(self) -> str:
        """Return the summary as LaTeX (package booktabs), followed by the notes."""
        parts = ["\\begin{center}\n" + block.latex() + "\n\\end{center}" for block in self.blocks]
        tables = "\n".join([f"% {_latex_cell(self.title)}", *parts])
        items = "\n".join(rf"\item {_latex_cell(note)}" for note in self.notes)
        return f"{tables}\n\nNotes:\n\\begin{{enumerate}}\n{items}\n\\end{{enumerate}}"

    def as_csv(self) -> str:
        """Return the summary as comma-separated values, one block of rows per table."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        for table in self.tables:
            if table.title:
                writer.writerow([table.title])
            writer.writerows([str(cell).strip() for cell in row] for row in table.data)
            writer.writerow([])
        writer.writerows(["note", note] for note in self.notes)
        return out.getvalue()


def _wrapped(notes: Sequence[str], width: int) -> Iterator[str]:
    for number, note in enumerate(notes, start=1):
        head = f"[{number}] "
        lines = textwrap.wrap(note, width - len(head), break_long_words=False, break_on_hyphens=False)
        yield head + ("\n" + " " * len(head)).join(lines)


def facts_block(left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]]) -> Block:
    """Return a block of labelled facts in two columns."""
    rows = []
    for i in range(max(len(left), len(right))):
        pair = [*(left[i] if i < len(left) else ("", "")), *(right[i] if i < len(right) else ("", ""))]
        rows.append([f"{pair[0]}:" if pair[0] else "", pair[1], f"{pair[2]}:" if pair[2] else "", pair[3]])
    return Block(rows, "lrlr", pairs=True)


# ----------------------------------------------------------------------------- density modes


def density_modes_summary(result: DensityModesResults, level: float = 0.95) -> ReleaseSummary:
    """Return the summary of a `DensityModesResults`.

    Parameters
    ----------
    result : DensityModesResults
        What to show.
    level : float
        Coverage of the intervals, in (0, 1).
    """
    blocks = [banner()] if result.simulated else []
    blocks += [
        facts_block(_fit_facts(result), privacy_facts(result)),
        columns_block(result),
        _modes_block(result, level) if result.n_modes else _no_modes_block(),
        facts_block(*(_diagnostic_facts(result) if result.trace is None else trace_facts(result))),
    ]
    return ReleaseSummary(_title(result), blocks, list(_notes(result, level)))


def _title(result: DensityModesResults) -> str:
    if result.privacy is None:
        return "Modes of the density (not private)"
    if result.simulated:
        return "Modes of the density, simulated noise (NOT PRIVATE)"
    return "Private modes of the density"


def banner() -> Block:
    """Return the line that marks a simulated release."""
    return Block([["*** SIMULATED: the noise came from a seed. NOT PRIVATE. Do not publish. ***"]], "c")


def _fit_facts(result: DensityModesResults) -> list[tuple[str, str]]:
    facts, spent = result.facts, result.privacy
    rows = [("Label", fits(result.label, LEFT_WIDTH))] if result.label else []
    rows.append((used_label(spent), f"{facts.n_records:.0f}"))
    if spent is not None and spent.n_units is not None:
        rows.append((f"{spent.unit.capitalize()}s (public)", str(spent.n_units)))
    return [
        *rows,
        ("Modes", f"{result.n_modes} ({_how_many(result)})"),
        ("Kernel", _kernel(result)),
        ("Bandwidth rule", fits(result.bandwidth_rule or "not stated", LEFT_WIDTH)),
    ]


def _kernel(result: DensityModesResults) -> str:
    if result.trace is not None:
        return result.trace.kernel_name
    return "Gaussian" if result.facts.order == 2 else f"Gaussian, order {result.facts.order}"


def used_label(spent: PrivacySpent | None) -> str:
    """Return what the released number of records counts: records, persons, or weights over their ceiling."""
    if spent is not None and spent.max_weight is not None:
        return "Weighted count"
    return "Persons used" if spent is not None and spent.unit == "person" else "Records used"


def _how_many(result: DensityModesResults) -> str:
    doubtful = int(np.count_nonzero(~result.mode_set.significant))
    if result.n_modes_requested is not None:
        return f"{result.n_modes_requested} asked for"
    return "number found" if not doubtful else f"{result.n_modes - doubtful} told from noise"


def privacy_facts(result: Results) -> list[tuple[str, str]]:
    """Return the guarantee as labelled facts."""
    spent = result.privacy
    if spent is None:
        return [("Privacy", "none (no noise was added)")]
    verb = "replacing" if spent.adjacency == "replace" else "adding or removing"
    rows = [
        ("Epsilon", plain(spent.epsilon)),
        ("Delta", plain(spent.delta)),
        ("Protects against", f"{verb} one {spent.protects}"),
        ("Mechanism", fits(spent.mechanism, RIGHT_WIDTH)),
        ("Noise scale", f"{spent.noise_scale:.4g} (sensitivity {spent.sensitivity:.4g})"),
        ("Values outside bounds", "clipped" if spent.outside == "clip" else "ignored"),
    ]
    if spent.max_weight is not None:
        rows.append(("Largest weight", plain(spent.max_weight)))
    return rows


def fits(text: str, width: int) -> str:
    """Return the text where it fits its cell, and a pointer to the notes where not."""
    return text if len(text) <= width else "see notes"


def columns_block(result: Results) -> Block:
    """Return one row per coordinate: public bounds in the original column's units, bandwidth."""
    facts = result.facts
    transformed = any(c.name != c.column for c in result.coordinates)
    rows = []
    for j, coordinate in enumerate(result.coordinates):
        low, high = _bounds(result, j)
        shown = limits_text(coordinate.kind, low, high)
        width = float(facts.bandwidth[j])
        bandwidth = spread_text(coordinate.kind, width)
        source = [shorten(coordinate.column, NAME_WIDTH)] if transformed else []
        rows.append([shorten(coordinate.name, NAME_WIDTH), *source, *shown, bandwidth])
    headers = ("column", *(["bounds on"] if transformed else []), "lower", "upper", "bandwidth")
    return Block(rows, "ll"[: 1 + transformed] + "rrr", headers)


def _bounds(result: Results, j: int) -> tuple[float, float]:
    coordinate = result.coordinates[j]
    stated = {} if result.privacy is None else result.privacy.bounds
    if coordinate.column in stated:
        low, high = stated[coordinate.column]
        return float(low), float(high)
    box = np.array([result.facts.lower[j], result.facts.upper[j]])
    low, high = coordinate.back_number(box)
    # An interval of an expression is wider by a last place: that of 0 is no number that means anything.
    low, high = (0.0 if abs(end) < 1e-300 else float(end) for end in (low, high))
    return low, high


def _modes_block(result: DensityModesResults, level: float) -> Block:
    private = result.privacy is not None
    # Tables of all modes, made once.
    errors, intervals = result.std_errors, result.conf_int(level)
    texts = [_coordinate_text(result, j, errors) for j in range(len(result.coordinates))]
    rows = [
        row
        for mode in range(result.n_modes)
        for row in _mode_rows(result, mode, private, errors, intervals, texts)
    ]
    tail = (1 - level) / 2
    headers = (
        "mode",
        "column",
        "estimate",
        *(["s.e.", *_sources(result)] if private else ["s.e."]),
        f"[{tail:.4g}",
        f"{1 - tail:.4g}]",
        "share",
        "height z",
    )
    return Block(rows, "ll" + "r" * (len(headers) - 2), headers)


def _sources(result: DensityModesResults) -> tuple[str, ...]:
    """Return the parts of the standard error that have a column."""
    return ("privacy", "sampling", *(["bias"] if result.mode_set.refined.any() else []))


def _mode_rows(
    result: DensityModesResults,
    mode: int,
    private: bool,
    errors: pd.DataFrame,
    intervals: pd.DataFrame,
    texts: Sequence[ValueText],
) -> Iterator[list[str]]:
    """Yield the lines of one mode, from the tables of all."""
    errors, intervals = errors.loc[[mode + 1]], intervals.loc[[mode + 1]]
    modes = result.mode_set
    number = f"{mode + 1}" if modes.reliable[mode] else f"{mode + 1} {DOUBTFUL}"
    share = float(modes.mass[mode])
    ends = [MISSING if math.isnan(share) else f"{share:.3f}", z_text(float(modes.height_z[mode]))]
    for j, coordinate in enumerate(result.coordinates):
        text = texts[j]
        parts = ("total", *_sources(result)) if private else ("total",)
        limits = [float(intervals.iloc[j][side]) for side in ("lower", "upper")]
        head = [number if j == 0 else "", shorten(coordinate.name, NAME_WIDTH)]
        shown = [text.value(float(modes.locations[mode, j]))]
        shown += [text.error(float(errors.iloc[j][part])) for part in parts]
        yield [*head, *shown, *(text.value(v) for v in limits), *(ends if j == 0 else ["", ""])]
        if coordinate.transform != "identity":
            at = coordinate.back_number(np.array([modes.locations[mode, j], *limits]))
            back = value_text("number", [(at[2] - at[1]) / 4], at, abs(at[0]) / 100)
            cells = [back.value(float(v)) for v in at]
            name = f"  {_ARROW} {shorten(coordinate.column, NAME_WIDTH - 5)}"
            yield ["", name, cells[0], *([""] * len(parts)), *cells[1:], "", ""]


def _coordinate_text(result: DensityModesResults, j: int, errors: pd.DataFrame) -> ValueText:
    total = errors["total"].to_numpy()[j :: len(result.coordinates)]
    values = result.mode_set.locations[:, j]
    return value_text(result.coordinates[j].kind, total, values, float(result.facts.bandwidth[j]) / 20)


def z_text(value: float) -> str:
    """Return a number of standard deviations as text."""
    if math.isnan(value):
        return "--"
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"


def _no_modes_block() -> Block:
    return Block([["No mode was found: no peak of the surface stands clear of the noise."]], "c")


def _diagnostic_facts(
    result: DensityModesResults,
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    search = result.mode_set.diagnostics
    negative = result.negative_mass
    left = [
        ("Peaks looked at", str(search.candidates)),
        ("Dropped, too low", str(search.dropped_by_height)),
        ("Dropped, too shallow", str(search.dropped_by_persistence)),
        ("Merged", str(search.merged)),
        ("Search converged", "yes" if search.all_converged else "NO"),
    ]
    right = [
        ("False-mode rate", plain(search.false_mode_rate, 3)),
        ("Least height of a mode", f"{search.height_threshold:.3g}"),
        ("Noise sd of the density", f"{result.facts.noise_sd:.3g}"),
        ("Independent noise cells", _count(search.noise_cells)),
        ("Negative mass", "--" if negative is None else f"{negative:.3g}"),
    ]
    return left, right


def _count(value: float) -> str:
    if not math.isfinite(value):
        return "--"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _notes(result: DensityModesResults, level: float) -> Iterator[str]:
    spent = result.privacy
    if spent is None:
        yield "NOT PRIVATE: no noise was added, so everything here follows the rows and nothing is protected."
    else:
        yield spent.statement()
    yield from long_facts(result)
    if result.n_modes:
        yield _error_note(result, level) if result.trace is None else trace_error_note(result, level)
        yield from _transform_notes(result)
        yield from doubts(result) if result.trace is None else trace_doubts(result)
        yield from _clipping_notes(result)
    else:
        yield (
            "What helps: more records, a larger epsilon, narrower public bounds, or a larger bandwidth. "
            "The surface itself is released and can be plotted."
        )
    if result.mode_set.diagnostics.coarse_grid:
        yield "The box is so wide against the bandwidth that the search may have missed narrow peaks."
    if spent is not None:
        yield from spent.notes
    for warning in result.warnings:
        yield f"Warning: {warning}"


def long_facts(result: Results) -> Iterator[str]:
    """Say in a note what did not fit its cell."""
    mechanism = "" if result.privacy is None else result.privacy.mechanism
    for name, text, width in (
        ("Label", result.label, LEFT_WIDTH),
        ("Bandwidth rule", result.bandwidth_rule, LEFT_WIDTH),
        ("Mechanism", mechanism, RIGHT_WIDTH),
    ):
        if fits(text, width) != text:
            yield f"{name}: {text}."
    if result.privacy is not None and result.privacy.max_weight is not None:
        yield (
            "Each record counts its weight over the largest. Sampling errors are at most those shown: the "
            "squares of the weights are not released, so every record is taken to have the largest weight."
        )


def _error_note(result: DensityModesResults, level: float) -> str:
    refined = result.mode_set.refined
    source = "the sampling of the records"
    if result.privacy is not None:
        source = f"the privacy noise, {source}" if refined.any() else f"the privacy noise and {source}"
    numbers = [str(mode + 1) for mode in np.flatnonzero(~refined).tolist()]
    itself = " and the smoothing bias thought to be left (bias), for the modes of the density itself"
    smoothed = "of the density smoothed at the bandwidth shown"
    if refined.all():
        target = f"{itself}."
    elif refined.any():
        target = f"{itself}; for {_modes(numbers)}, {smoothed}, whose smoothing bias is not in them."
    else:
        target = f", for the modes {smoothed}. Smoothing bias is not in them."
    return (
        f"Standard errors and {100 * level:g}% intervals cover {source}{target} "
        "Share: part of the density in the mode's basin. Height z: height over its standard error."
    )


def _transform_notes(result: DensityModesResults) -> Iterator[str]:
    logs = [c for c in result.coordinates if c.transform == "log"]
    if logs:
        names = " and ".join(c.name for c in logs)
        columns = " and ".join(c.column for c in logs)
        yield (
            f"Rows {_ARROW} show modes of the density of {names} taken back to {columns}. "
            "They are not modes of the density on the original scale, which lie elsewhere."
        )


def doubts(result: DensityModesResults) -> Iterator[str]:
    """Say why intervals are not reliable, in plain English: one note, modes grouped by reason."""
    modes = result.mode_set
    doubtful: list[int] = np.flatnonzero(~modes.reliable).tolist()
    if not doubtful:
        return
    faces, bent, flat, noise, biased, stuck = [], [], [], [], [], []
    for mode in doubtful:
        number, known = str(mode + 1), True
        sides = [_side(result, mode, j) for j in np.flatnonzero(modes.on_face[mode]).tolist()]
        if sides:
            faces.append(f"{number} ({', '.join(sides)})")
        curvature = float(modes.curvature_z[mode])
        free = ~modes.on_face[mode]
        spread = result.cov_params(mode + 1).to_numpy()[np.ix_(free, free)]
        if not np.isfinite(spread).all():
            bent.append(number)
        elif curvature < _CLEAR_CURVATURE:
            flat.append(f"{number} ({math.floor(10 * curvature) / 10:.1f})")
        else:
            known = bool(sides)
        if not modes.significant[mode]:
            noise.append(number)
        elif not known and modes.diagnostics.all_converged:
            biased.append(number)
        elif not known:
            stuck.append(number)
    rate = modes.diagnostics.false_mode_rate
    reasons = (
        (f"curvature below {_CLEAR_CURVATURE:g} times its noise, where intervals cover too rarely", flat),
        ("no downward curvature in every direction", bent),
        ("on a bound", faces),
        ("smoothing bias not shown to be small against the standard error", biased),
        (f"not told from noise at a false-mode rate of {rate:g}", noise),
        ("the search did not converge", stuck),
    )
    told = "; ".join(f"{reason}: {_modes(found)}" for reason, found in reasons if found)
    yield f"{DOUBTFUL} Intervals that cannot be relied on: {told}."


def _modes(found: Sequence[str]) -> str:
    return f"mode{'s' if len(found) > 1 else ''} {', '.join(found)}"


def _side(result: DensityModesResults, mode: int, j: int) -> str:
    at, facts = result.mode_set.locations[mode, j], result.facts
    side = "lower" if at - facts.lower[j] <= facts.upper[j] - at else "upper"
    return f"{side} {result.columns[j]}"


def _clipping_notes(result: DensityModesResults) -> Iterator[str]:
    """Point out modes that values clipped to a bound may have made."""
    if result.privacy is not None and result.privacy.outside != "clip":
        return
    facts = result.facts
    at = result.mode_set.locations
    near = np.minimum(at - facts.lower, facts.upper - at) < facts.bandwidth
    found = [
        f"{mode + 1} ({', '.join(_side(result, mode, j) for j in np.flatnonzero(near[mode]).tolist())})"
        for mode in np.flatnonzero(near.any(axis=1)).tolist()
    ]
    if found:
        yield (
            f"Within a bandwidth of a bound: {_modes(found)}. Values beyond a bound count as at it "
            "and can pile up into a mode there. A release with wider bounds, or with outside='ignore', "
            "would tell."
        )
