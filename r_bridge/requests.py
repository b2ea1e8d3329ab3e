"""What a request to the door holds: which data, which options, and how counts are written in R."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pydpmode.errors import InvalidArgument
from pydpmode.privacy.grams_options import GramsOptions
from pydpmode.results.grouped_surface import GroupedSurface
from pydpmode.results.released_surface import ReleasedSurface

from .handles import Handles

# Arguments that are counts: R's numbers are doubles unless written 5L.
_COUNTS = frozenset(
    {
        *("seed", "n", "n_modes", "n_clusters", "n_components", "n_features", "n_guess", "n_max", "order"),
        *("T", "m", "k", "points"),
    }
)
_SERIES = frozenset({"columns", "log", "datetimes"})

handles = Handles()


def checked(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by name, counts as whole numbers; missing (NA) ones are refused."""
    return {name: _argument(name, value) for name, value in args.items()}


def _argument(name: str, value: Any) -> Any:
    if isinstance(value, float) and np.isnan(value):
        raise InvalidArgument(f"{name} is missing (NA); leave it out, or give a value")
    if name in _COUNTS and isinstance(value, float) and value.is_integer():
        return int(value)
    if name in _SERIES and isinstance(value, str):
        return (value,)
    return value


def options_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a model; those of DP-GRAMS as their own object."""
    found = checked(options)
    if found.get("grams") is not None:
        found["grams"] = GramsOptions(**checked(found["grams"]))
    return found


def source_of(data: Any) -> Any:
    """Return what a model is given: a table, a path, an open study or a released surface."""
    if isinstance(data, Mapping) and "id" in data:
        return handles.find(data["id"], data["session"])
    if isinstance(data, Mapping) and "surface" in data:
        return surface_from(data["surface"])
    return data


def surface_from(state: str, group: Any = None) -> ReleasedSurface:
    """Return the surface of a state, or of a result's state that holds it: with groups that of one level."""
    stored = json.loads(state)
    if group is None:
        return ReleasedSurface.from_dict(stored)
    return GroupedSurface.from_dict(stored["surface"]).at(group)


def preview_of(plan: Any) -> dict[str, Any]:
    """Return a preview of any mechanism as plain data: its table is `modes`, `branches` or `line`."""
    facts = {name: getattr(plan, name) for name in plan.__dataclass_fields__}
    facts["bandwidth"] = dict(plan.bandwidth.items())
    for name in ("modes", "branches", "line"):
        if facts.get(name) is None:
            facts.pop(name, None)
        else:
            facts[name] = facts[name].reset_index()
    return {**facts, "columns": list(plan.columns), "fits": plan.fits, "text": str(plan)}
