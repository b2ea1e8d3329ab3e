"""Messages of the Python side in R's words: argument names, values and lists as an R user writes them.

The models speak of `n_clusters=3`, `bounds={'age': (15, 90)}` and `None`; in R these are `k = 3`,
`bounds = list(age = c(15, 90))` and `NULL`. What stands in quotes was given by the user, or is a value,
and is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

# Whole phrases whose R counterpart is not a matter of spelling; the longest first.
_PHRASES: tuple[tuple[str, str], ...] = (
    (", on the command line --datetimes)", ")"),
    ("datetimes=[...]", "datetimes"),
    ("pandas.to_numeric(column, errors='coerce')", "as.numeric(as.character(column))"),
    ("pandas.to_datetime(column, errors='coerce')", "as.POSIXct(column)"),
    ("numpy.asarray(rows, dtype=float)", "as.matrix(rows)"),
    ("save it with surface=True (released surfaces only)", "save it with its surface"),
    (" (save with surface=True)", ""),
    (", or save with surface=True", ", or save it with its surface"),
    ("Ledger.open('study.jsonl', ...)", "private_data(ledger = 'study.jsonl', ...)"),
    ("level must be one of", "group must be one of"),
    (".modes, .std_errors and .surface", "coef(), tidy() and surface()"),
    (".modes, .std_errors and .conf_int()", "coef(), tidy() and confint()"),
    ("std_errors", "tidy()"),
    ("load_results()", "dp_read()"),
    ("preview()", "a preview"),
    ("a mapping {", "{"),
    ("has dtype category", "is of type character or factor"),
    ("has no datetime dtype", "does not hold dates"),
    ("dtype", "type"),
    ("log=", "log()"),
    ("one-dimensional array, Series, Arrow array or list", "vector"),
)
_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "PrivateClusteringPipeline": "dp_pca_clusters",
        "ModalClustering": "dp_modal_clusters",
        "ModalRegression": "dp_modal_regression",
        "DensityModes": "dp_modes",
        "PrivateScaler": "dp_scale",
        "PrivateData": "private_data",
        "PrivatePCA": "dp_pca",
        "GramsOptions": "grams_options",
        "Budget": "dp_budget",
    }
)
_ARGUMENTS: Mapping[str, str] = MappingProxyType({"n_clusters": "k", "method": "type"})
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "str": "text",
        "dict": "a list",
        "bool": "a logical",
        "NoneType": "NULL",
        "tuple": "a vector",
        "int": "a number",
        "float": "a number",
    }
)
_CONSTANTS: Mapping[str, str] = MappingProxyType(
    {"True": "TRUE", "False": "FALSE", "None": "NULL", "nan": "NA", "inf": "Inf"}
)
# Not the apostrophe of "the rows' order".
_QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`")
_MARK = "\0"


def in_r_words(message: str) -> str:
    """Return a message of the Python side as an R user would be told it.

    Parameters
    ----------
    message : str
        Text of an error or a warning.

    Returns
    -------
    str
        The same with R's functions, argument names, lists and constants.
    """
    for python, r in _PHRASES:
        message = message.replace(python, r)
    quoted: list[str] = []

    def hide(found: re.Match[str]) -> str:
        quoted.append(found.group())
        return _MARK

    message = _translate(_QUOTED.sub(hide, message))
    return _bare_names(_restored(message, quoted))


def _restored(message: str, quoted: list[str]) -> str:
    left = iter(quoted)
    return re.sub(_MARK, lambda _: next(left), message)


def _translate(text: str) -> str:
    """Translate what stands outside of quotes; quotes are single marks here."""
    text = re.sub(r" \(on the command line [^()]*\)", "", text)
    text = re.sub(r"\bnp\.\w+\(([^()]*)\)", r"\1", text)
    text = re.sub(r"\bpip install [\w\0\[\].]+", "install_pydpmode()", text)
    text = re.sub(rf"\b({'|'.join(_CLASSES)})\b(\()?", _call, text)
    text = re.sub(rf"\b({'|'.join(_CONSTANTS)})\b", lambda m: _CONSTANTS[m.group(1)], text)
    text = re.sub(rf"\bgot ({'|'.join(_TYPES)})\b(?![(=])", lambda m: f"got {_TYPES[m.group(1)]}", text)
    text = re.sub(rf"\b({'|'.join(_ARGUMENTS)})\b", lambda m: _ARGUMENTS[m.group(1)], text)
    text = re.sub(r"\ba dictionary of columns\b", "a named list of columns", text)
    text = re.sub(r"\bdictionary\b", "named list", text)
    text = re.sub(r"\b(pandas )?DataFrame\b", "data frame", text)
    # Values in braces and brackets: {'age': (low, high)}, ['north', 'south'], (1, 2) after a comma or `got`.
    text = re.sub(r"\{([^{}]*)\}", _braces, text)
    text = re.sub(r"(=|got )[\[(]([^][()]*)[\])]", r"\1c(\2)", text)
    text = re.sub(r"\[(\0(?:, \0)*)\]", r"\1", text)
    # Keywords: `name=value`, and `name=` by itself.
    text = re.sub(r"\b([A-Za-z_]\w*)=(?=[^\s,;.)])(?!=)", r"\1 = ", text)
    return re.sub(r"\b([A-Za-z_]\w*)=(?=[\s,;.)]|$)", r"\1", text)


def _call(found: re.Match[str]) -> str:
    return f"{_CLASSES[found.group(1)]}{'(' if found.group(2) else '()'}"


def _braces(found: re.Match[str]) -> str:
    inside = found.group(1)
    if ":" not in inside:
        return f"c({inside})"
    pairs = re.sub(r":\s*\(([^()]*)\)", r": c(\1)", inside)
    kind = "list" if "c(" in pairs else "c"
    inside = re.sub(r"\s*:\s*", " = ", pairs)
    return f"{kind}({inside})"


def _bare_names(text: str) -> str:
    """Take the quotes off names in lists: list('age' = c(...)) becomes list(age = c(...))."""

    def bare(found: re.Match[str]) -> str:
        name = found.group(2)
        plain = re.fullmatch(r"[A-Za-z.][\w.]*", name)
        return f"{found.group(1)}{name if plain else f'`{name}`'} = "

    rule: Callable[[re.Match[str]], str] = bare
    return re.sub(r"((?:list|c)\(|, )['\"]([^'\"]*)['\"] = ", rule, text)
