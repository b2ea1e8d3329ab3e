"""NumPy in the place of CuPy: arrays that refuse to meet the host's, as a device's do, and planted faults.

The lines that run on a GPU are run with this module by the tests, since no GPU is at hand there.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pydpmode.numerics.device_sums import ArrayModule


class OnDevice(np.ndarray):
    """An array that another array can only be combined with when it is on the device as well."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Refuse arrays of the host, as CuPy does."""
        outs = kwargs.get("out") or ()
        for operand in (*inputs, *outs):
            if isinstance(operand, np.ndarray) and not isinstance(operand, OnDevice):
                raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        plain = [x.view(np.ndarray) if isinstance(x, OnDevice) else x for x in inputs]
        if outs:
            kwargs["out"] = tuple(x.view(np.ndarray) for x in outs)
        result = getattr(ufunc, method)(*plain, **kwargs)
        return outs[0] if outs else on_device(result)


def on_device(values: Any) -> Any:
    """Return an array as one on the device."""
    return np.asarray(values).view(OnDevice)


def to_host(values: Any) -> NDArray[np.float64]:
    """Copy an array from the device, which it must be on."""
    if not isinstance(values, OnDevice):
        raise TypeError("not an array of the device")
    return np.array(values.view(np.ndarray))


def _stack(parts: list[Any], axis: int) -> Any:
    return on_device(np.stack([to_host(part) for part in parts], axis=axis))


def functions() -> dict[str, Any]:
    """Return the functions of CuPy that the package calls, by NumPy; a call of another one is an error."""
    names = ("cos", "sin", "rint", "matmul", "int64", "uint64", "float64")
    own = {"asarray": on_device, "stack": _stack, "empty": lambda shape: on_device(np.empty(shape))}
    return {name: getattr(np, name) for name in names} | own


def module(faults: dict[str, Callable[..., Any]] | None = None, free: int = 2**31) -> ArrayModule:
    """Return the stand-in, with some functions replaced, and a number of bytes that are said to be free."""
    return ArrayModule(SimpleNamespace(**(functions() | (faults or {}))), "a stand-in", to_host, lambda: free)


def in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy computed in single precision."""

    def single(*operands: Any, out: Any = None) -> Any:
        narrow = [np.asarray(x.view(np.ndarray), dtype=np.float32) for x in operands]
        result = on_device(function(*narrow).astype(np.float64))
        if out is None:
            return result
        out[...] = result
        return out

    return single


def in_fixed_point(bits: int) -> Callable[..., Any]:
    """Return a matrix product whose entries are cut off after some bits, as an emulation may do."""

    def product(a: Any, b: Any) -> Any:
        cut = [np.trunc(x.view(np.ndarray) * 2.0**bits) * 2.0**-bits for x in (a, b)]
        return on_device(np.matmul(*cut))

    return product


def lossy(a: Any, b: Any) -> Any:
    """Return a product that misses one row."""
    return np.matmul(a[..., :-1], b[..., :-1, :])


FAULTS: dict[str, dict[str, Callable[..., Any]]] = {
    "product in single precision": {"matmul": in_single(np.matmul)},
    "cosines in single precision": {"cos": in_single(np.cos)},
    "sines in single precision": {"sin": in_single(np.sin)},
    "product emulated with 40 bits": {"matmul": in_fixed_point(40)},
    "a row left out": {"matmul": lossy},
}


def cupy_of_numpy(*, devices: int = 1) -> ModuleType:
    """Return a module that can stand for `cupy` in `sys.modules`."""
    cupy: Any = ModuleType("cupy")
    for name, value in functions().items():
        setattr(cupy, name, value)
    cupy.asnumpy = to_host
    cupy.cuda = SimpleNamespace(
        is_available=lambda: devices > 0, runtime=SimpleNamespace(memGetInfo=lambda: (2**30, 2**31))
    )
    cupy.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 2**20)
    module: ModuleType = cupy
    return module
