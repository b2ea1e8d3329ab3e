"""All cases, in the order in which they run and are shown."""

from __future__ import annotations

from . import feature_cases, other_cases, release_cases, search_cases

CASES = (*release_cases.CASES, *feature_cases.CASES, *search_cases.CASES, *other_cases.CASES)
