"""Arrow arrays as float64 columns and as identifier codes; the only users of pyarrow's types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgument, MissingDependency
from ..numerics.surfaces import FloatArray
from .table_source import CodeArray, Kind, placed_sum, write_seconds


def import_pyarrow() -> Any:
    """Return pyarrow with its compute functions, or raise `MissingDependency`."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise MissingDependency(
            "reading files and Arrow tables needs pyarrow; install it with: pip install pyarrow"
        ) from None
    return pyarrow


def arrow_kind(dtype: Any) -> Kind | None:
    """Return what a column of this Arrow type holds, None when it is not numeric."""
    types = import_pyarrow().types
    if types.is_timestamp(dtype) or types.is_date(dtype):
        return "datetime"
    if types.is_duration(dtype):
        return "timedelta"
    numeric = types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype)
    return "number" if numeric or types.is_boolean(dtype) else None


def arrow_dtype_name(dtype: Any) -> str:
    """Return the type's name without anything that might hold a value."""
    types = import_pyarrow().types
    return "dictionary (category)" if types.is_dictionary(dtype) else str(dtype)


def fill_from_arrow(array: Any, out: FloatArray) -> None:
    """Write an Arrow array of a numeric or time type into `out`: null becomes NaN.

    Parameters
    ----------
    array : pyarrow.Array
        Of length len(out).
    out : array of shape (len(array),), float64
        Overwritten.
    """
    pa = import_pyarrow()
    unit = _time_unit(array.type)
    if unit is not None:
        steps = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
        write_seconds(steps.fill_null(0).to_numpy(zero_copy_only=False), unit, out)
        if array.null_count:
            out[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return
    array = _without_half_floats(array)
    if not pa.types.is_float64(array.type):
        array = pa.compute.cast(array, pa.float64(), safe=False)
    out[:] = array.to_numpy(zero_copy_only=False)


def arrow_codes(arrays: Iterable[Any], dtype: Any) -> CodeArray:
    """Return identifier codes for the rows of Arrow arrays of one type.

    Codes follow the first appearance; null (and float NaN) is -1.

    Parameters
    ----------
    arrays : iterable of pyarrow.Array
        The column's parts in order.
    dtype : pyarrow.DataType
        Their type.

    Raises
    ------
    InvalidArgument
        When the type is nested.
    """
    pa = import_pyarrow()
    if pa.types.is_nested(dtype):
        raise InvalidArgument(
            f"an identifier column has the nested dtype {dtype}; give one plain value (text, number, "
            "date) a row"
        )
    encoded = [_encode(array) for array in arrays]
    if not encoded:
        return np.empty(0, dtype=np.int64)
    parts = pa.chunked_array(encoded).unify_dictionaries().chunks
    codes = np.concatenate([_indices(part) for part in parts])
    return codes


def arrow_objects(array: Any) -> list[object]:
    """Return an Arrow array's texts, numbers and truth values as Python objects; None for what is missing.

    Whatever a cell holds, nothing fails: texts that are not UTF-8 are decoded with replacements, and other
    types (such as times of a day, of which some have no Python object) are None throughout.
    """
    pa = import_pyarrow()
    types = pa.types
    if types.is_dictionary(array.type):
        array = pa.compute.cast(array, array.type.value_type)
    dtype = array.type
    if types.is_string(dtype) or types.is_large_string(dtype) or str(dtype) == "string_view":
        cells = pa.compute.cast(array, pa.large_binary()).to_pylist()
        return [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]
    plain = types.is_boolean(dtype) or types.is_integer(dtype) or types.is_floating(dtype)
    return list(array.to_pylist()) if plain else [None] * len(array)


def order_fingerprint(array: Any, first: int) -> int:
    """Return a number of an Arrow array's values and their places, `first` on; it adds up over parts.

    Two orders of rows have the same sum by a chance of about 2^-64. NOT private.
    """
    import pandas as pd

    pa = import_pyarrow()
    types = pa.types
    if types.is_dictionary(array.type):
        array = pa.compute.cast(array, array.type.value_type)
    # One form for each type, so that the borders of batches change nothing: NumPy has no missing integers.
    if _time_unit(array.type) is not None or types.is_time(array.type):
        # Times of a day too: of some, such as 24:00, Python has no object.
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    array = _without_half_floats(array)
    missing = np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if types.is_integer(array.type):
        # Not as floats: those beyond 2^53 would be alike.
        array = array.fill_null(0)
    elif types.is_decimal(array.type):
        array = pa.compute.cast(pa.compute.cast(array, pa.large_string()), pa.large_binary())
    elif arrow_kind(array.type) == "number":
        array = pa.compute.cast(array, pa.float64(), safe=False)
    elif types.is_string(array.type) or types.is_large_string(array.type) or str(array.type) == "string_view":
        # Texts need not be UTF-8.
        array = pa.compute.cast(array, pa.large_binary())
    hashes = pd.util.hash_array(array.to_numpy(zero_copy_only=False))
    return placed_sum(np.where(missing, np.uint64(1), hashes), first)


def _encode(array: Any) -> Any:
    """Return a dictionary array with 32-bit indices, without NaN and without unused entries."""
    pa = import_pyarrow()
    types = pa.types
    if types.is_dictionary(array.type):
        array = pa.compute.cast(array, array.type.value_type)
    array = _without_half_floats(array)
    if types.is_floating(array.type):
        array = pa.compute.if_else(pa.compute.is_nan(array), pa.scalar(None, array.type), array)
        # Equal numbers are one person, and -0.0 equals 0.0 (their sum is 0.0).
        array = pa.compute.add(array, pa.scalar(0.0, array.type))
    if types.is_null(array.type):
        array = pa.compute.cast(array, pa.int64())
    if str(array.type) in ("string_view", "binary_view"):
        array = pa.compute.cast(array, pa.large_binary())
    return array.dictionary_encode()


def _indices(part: Any) -> CodeArray:
    filled = part.indices.fill_null(-1)
    return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int64)


def _without_half_floats(array: Any) -> Any:
    """Return half floats as floats, by NumPy: Arrow casts them only since version 21."""
    pa = import_pyarrow()
    if not pa.types.is_float16(array.type):
        return array
    values = np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float32)
    return pa.array(values, mask=array.is_null().to_numpy(zero_copy_only=False))


def _time_unit(dtype: Any) -> str | None:
    """Return the unit that an Arrow time type counts in, None for other types."""
    types = import_pyarrow().types
    if types.is_timestamp(dtype) or types.is_duration(dtype):
        return str(dtype.unit)
    if types.is_date32(dtype):
        return "D"
    return "ms" if types.is_date64(dtype) else None


class ArrowColumn:
    """One in-memory Arrow column (a pyarrow ChunkedArray)."""

    def __init__(self, values: Any) -> None:
        self._values = values
        self.dtype = arrow_dtype_name(values.type)
        self.kind = arrow_kind(values.type)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._values)

    def fill(self, start: int, out: FloatArray) -> None:
        """Write rows start, start + 1, ... into `out`."""
        position = 0
        for chunk in self._values.slice(start, len(out)).chunks:
            fill_from_arrow(chunk, out[position : position + len(chunk)])
            position += len(chunk)

    def codes(self) -> CodeArray:
        """Return identifier codes."""
        return arrow_codes(self._values.chunks, self._values.type)

    def objects(self) -> Sequence[object]:
        """Return the values as Python objects."""
        return [value for chunk in self._values.chunks for value in arrow_objects(chunk)]
