"""The bridge between Python and R: one door for R code, and results as R objects under rpy2.

`door.dispatch` is what the R package `dpmode` calls, through reticulate or through rpy2. `connect`, `to_r`
and `from_r` are for Python users with rpy2 (`pip install 'pydpmode[r]'`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .embedded import Bridge, RError, connect, from_r, to_r

__all__ = ["Bridge", "RError", "connect", "from_r", "to_r"]

# Imported at first use: the door works without rpy2.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import embedded

        return getattr(embedded, name)
