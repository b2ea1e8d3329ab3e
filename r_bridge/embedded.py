"""R embedded in Python, through rpy2: the same R functions, and results as R objects.

`connect()` starts R, loads the R package and gives it the door of this very Python: R code then needs no
reticulate, and what it fits can be used on both sides without a copy of the rows.
"""

from __future__ import annotations

import builtins
import functools
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import pydpmode
from pydpmode import errors
from pydpmode.errors import InvalidArgument, MissingDependency, PydpmodeError, PydpmodeWarning
from pydpmode.results.base_results import Results
from pydpmode.results.pipeline_results import PipelineResults
from pydpmode.results.preprocessing import ReleasedTransform
from pydpmode.results.released_surface import ReleasedSurface

from . import describe as tables
from . import transforms
from .door import dispatch_bytes
from .handles import StaleHandle
from .interrupts import Interrupts
from .requests import handles

PACKAGE = "dpmode"

Released = Results | ReleasedSurface | ReleasedTransform | PipelineResults

# Runs an R function and returns its value, or what went wrong, as data: rpy2 itself would turn a
# condition into text. Warnings are collected.
_GUARD = """
function(fun, args) {
  warned <- list()
  note <- function(w) {
    warned[[length(warned) + 1L]] <<- list(classes = class(w), message = conditionMessage(w))
    invokeRestart("muffleWarning")
  }
  failed <- function(e) {
    text <- conditionMessage(e)  # R's own interrupt has none
    list(ok = FALSE, value = NULL, classes = class(e), message = if (is.null(text)) "interrupted" else text)
  }
  out <- tryCatch(
    withCallingHandlers(list(ok = TRUE, value = do.call(fun, args, quote = TRUE)), warning = note),
    error = failed, interrupt = failed
  )
  c(out[setdiff(names(out), "value")], list(value = out[["value"]], warnings = warned))
}
"""


class RError(PydpmodeError):
    """An error of R itself; `r_classes` is the class of its condition."""

    def __init__(self, message: str, r_classes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.r_classes = r_classes


class Bridge:
    """R with the package `dpmode` loaded. Made by `connect`.

    ::

        bridge = connect()
        bounds = {"age": [15, 90]}
        fit = bridge.call("dp_modes", bridge.eval("~ age"), table, bounds=bounds, epsilon=1.0, delta=1e-6)
        from_r(fit).n_modes
    """

    def __init__(self, interface: Any) -> None:
        from rpy2.rinterface_lib import openrlib

        self._r = interface
        self._interrupts = Interrupts(openrlib.rlib)
        self._guard = interface.evalr(_GUARD)
        # Kept here: R holds only a pointer to it.
        self._door = interface.rternalize(self._answer)
        self._unserialize = interface.evalr("base::unserialize")
        self._serialize = interface.evalr("function(x) serialize(x, NULL, xdr = FALSE, version = 2L)")
        interface.evalr(f"{PACKAGE}:::use_door")(self._door)

    def _answer(self, request: Any) -> Any:
        with self._interrupts.in_python():
            reply = dispatch_bytes(np.asarray(request).data)
        return self._r.ByteSexpVector(reply)

    def eval(self, text: str) -> Any:
        """Evaluate R code and return the R object. Conditions become exceptions and warnings."""
        return self.call_object(self._r.evalr("function(text) eval(parse(text = text), globalenv())"), text)

    def call(self, function: str, *args: Any, **options: Any) -> Any:
        """Call a function of the R package by name, and return the R object.

        Parameters
        ----------
        function : str
            Such as "dp_modes".
        *args, **options
            R objects, or plain Python data and pandas data frames (they go through this package's codec).

        Raises
        ------
        PydpmodeError
            The exception that the Python side raised, of its own class; `RError` for errors of R itself.
        KeyboardInterrupt
            On Ctrl-C, also while R code runs.
        """
        return self.call_object(self.function(function), *args, **options)

    def function(self, name: str) -> Any:
        """Return a function as the R package sees it: its own ones, and R's generics such as `residuals`."""
        find = self._r.evalr(f"function(name) get(name, envir = asNamespace('{PACKAGE}'), mode = 'function')")
        return self.call_object(find, name)

    def call_object(self, function: Any, *args: Any, **options: Any) -> Any:
        """Call an R function object; see `call`."""
        items = [*((None, value) for value in args), *options.items()]
        values = self._r.ListSexpVector([self.to_r(value) for _, value in items])
        names = self._r.StrSexpVector([name or "" for name, _ in items])
        arguments = self._r.evalr("function(x, n) { if (any(nzchar(n))) names(x) <- n; x }")(values, names)
        with self._interrupts.in_r():
            out = self._guard(function, arguments)
        reply = {str(name): item for name, item in zip(out.names, out, strict=True)}
        for item in reply["warnings"]:
            _warn(tuple(item[0]), str(item[1][0]))
        if not bool(reply["ok"][0]):
            raise _exception(tuple(reply["classes"]), str(reply["message"][0]))
        return reply["value"]

    def to_r(self, value: Any) -> Any:
        """Return plain Python data, a result or a surface as an R object; R objects as they are."""
        if isinstance(value, self._r.Sexp):
            return value
        if isinstance(value, Results | ReleasedSurface | ReleasedTransform | PipelineResults):
            return self._result(value)
        from .wire import encode

        return self._unserialize(self._r.ByteSexpVector(encode(value)))

    def _result(self, value: Released) -> Any:
        if isinstance(value, ReleasedSurface):
            described = tables.describe_surface(value)
        elif isinstance(value, Results) and value.privacy is None:
            raise InvalidArgument(
                "this result is not private: it rests on a surface that is a function of the rows, and is "
                "not handed to R, where it could be saved"
            )
        else:
            described = transforms.describe(value)
        return self._r.evalr(f"{PACKAGE}:::new_result")(self.to_r(described))

    def from_r(self, value: Any) -> Any:
        """Return an R object as Python data: results and surfaces as such, other ones as plain data."""
        from .arguments import plain
        from .wire import decode

        classes = tuple(value.rclass)
        if "dp_result" in classes or "dp_surface" in classes:
            return self._python_result(value, classes)
        if "dp_private_data" in classes:
            handle = value[0]
            return handles.find(str(handle["id"][0]), str(handle["session"][0]))
        return plain(decode(np.asarray(self._serialize(value)).tobytes()))

    def _python_result(self, value: Any, classes: tuple[str, ...]) -> Released:
        import json

        state = str(value[list(value.names).index("state")][0])
        if "dp_surface" in classes:
            return ReleasedSurface.from_dict(json.loads(state))
        return transforms.from_state(state)


def _warn(classes: tuple[str, ...], message: str) -> None:
    category: type[Warning] = UserWarning
    for name in classes:
        found = getattr(errors, name.removeprefix("dpmode_"), None) or getattr(
            builtins, name.removeprefix("dpmode_"), None
        )
        if isinstance(found, type) and issubclass(found, Warning):
            category = found
            break
    warnings.warn(message, category, stacklevel=4)


def _exception(classes: tuple[str, ...], message: str) -> BaseException:
    if "interrupt" in classes:
        return KeyboardInterrupt(message)
    for name in classes:
        found = getattr(errors, name.removeprefix("dpmode_"), None)
        if (
            isinstance(found, type)
            and issubclass(found, Exception)
            and not issubclass(found, PydpmodeWarning)
        ):
            return found(message)
        if name == "dpmode_StaleHandle":
            return StaleHandle(message)
    return RError(message, classes)


@functools.cache
def connect() -> Bridge:
    """Start R in this process, load the R package `dpmode`, and give it this Python as its door.

    Returns
    -------
    Bridge
        The same one on every call. `%%R` cells (rpy2.ipython) use the package from then on too.

    Raises
    ------
    MissingDependency
        When R, rpy2 or the R package is missing; the message says how to install it.
    """
    interface = _start_r()
    found = interface.evalr(f"requireNamespace('{PACKAGE}', quietly = TRUE)")[0]
    if not found:
        raise MissingDependency(
            f"the R package {PACKAGE} is not installed in this R; install it with R CMD INSTALL from the "
            "repository (make install-r)"
        )
    version = str(interface.evalr(f"as.character(utils::packageVersion('{PACKAGE}'))")[0])
    if version != pydpmode.__version__:
        raise MissingDependency(
            f"the R package {PACKAGE} is version {version} and pydpmode is {pydpmode.__version__}; "
            "install the same version of both"
        )
    return Bridge(interface)


def _start_r() -> Any:
    try:
        # R's start-up sets LD_LIBRARY_PATH, and child Pythons would load the system's libpython by it.
        before = os.environ.get("LD_LIBRARY_PATH")
        import rpy2.rinterface as interface

        interface.initr()
    except (ImportError, OSError, ValueError, RuntimeError) as problem:
        raise MissingDependency(
            "R and rpy2 are needed: install R (Debian: apt-get install r-base-core) and then "
            f"pip install 'pydpmode[r]' ({type(problem).__name__}: {problem})"
        ) from problem
    if before is None:
        os.environ.pop("LD_LIBRARY_PATH", None)
    else:
        os.environ["LD_LIBRARY_PATH"] = before
    return interface


def to_r(result: Released) -> Any:
    """Return a Python result (or released surface) as the R object that `dp_modes()` would have made."""
    return connect().to_r(result)


def from_r(value: Any) -> Any:
    """Return an R result (or surface) as the Python one; other R objects as plain data, exactly."""
    return connect().from_r(value)


def package_folder() -> Path:
    """Return the folder of this package: where the R package's link points."""
    return Path(__file__).parent
