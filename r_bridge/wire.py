"""R's own serialization format, read and written in Python: the codec of both bridges.

R has `serialize()` and `unserialize()` in C; this module is their counterpart. One raw vector goes each
way, so that neither reticulate nor rpy2 converts a number, a missing value, a factor or a data frame.
The format is version 2, little endian ("R Internals", section 1.8). It holds plain vectors and lists
only: environments, functions and pointers are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from pydpmode.errors import InvalidArgument

Kind = Literal["logical", "integer", "double", "character"]

NA_INTEGER = -(2**31)
# R's missing double: a NaN whose low word is 1954.
NA_DOUBLE_BITS = 0x7FF00000000007A2

_HEADER = b"B\n" + struct.pack("<iii", 2, 0x00040200, 0x00020300)
_NULL, _REFERENCE, _SYMBOL, _PAIRS, _CHARS = 254, 255, 1, 2, 9
_LOGICAL, _INTEGER, _DOUBLE, _STRINGS, _LIST, _RAW = 10, 13, 14, 16, 19, 24
_IS_OBJECT, _HAS_ATTRIBUTES, _HAS_TAG = 256, 512, 1024
_LATIN1, _UTF8, _ASCII = 1 << 14, 1 << 15, 1 << 18
_KINDS: dict[int, Kind] = {_LOGICAL: "logical", _INTEGER: "integer", _DOUBLE: "double"}


@dataclass(frozen=True, eq=False)
class RVector:
    """An atomic R vector.

    Parameters
    ----------
    kind : {"logical", "integer", "double", "character"}
    values : int32 or float64 array, or list of str
        Missing integers and logicals are `NA_INTEGER`, missing strings None.
    attributes : dict
        Names, class, levels and so on, decoded.
    """

    kind: Kind
    values: Any
    attributes: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.values)

    @property
    def classes(self) -> tuple[str, ...]:
        """R's class attribute."""
        return _texts(self.attributes.get("class"))

    @property
    def names(self) -> tuple[str, ...] | None:
        """R's names, if it has any."""
        return _texts(self.attributes["names"]) if "names" in self.attributes else None


@dataclass(frozen=True, eq=False)
class RList:
    """A generic R vector: a list, or a data frame."""

    items: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[str, ...]:
        """R's class attribute."""
        return _texts(self.attributes.get("class"))

    @property
    def names(self) -> tuple[str, ...] | None:
        """R's names, if it has any."""
        return _texts(self.attributes["names"]) if "names" in self.attributes else None


def _texts(vector: Any) -> tuple[str, ...]:
    return () if vector is None else tuple("NA" if text is None else str(text) for text in vector.values)


# ------------------------------------------------------------------------------- reading


def decode(content: bytes | bytearray | memoryview) -> Any:
    """Return what R's `serialize(x, NULL, xdr = FALSE, version = 2)` wrote.

    Returns
    -------
    None, bytes, RVector or RList
        NULL, a raw vector, any other atomic vector, a list. Numbers are views of `content`.

    Raises
    ------
    InvalidArgument
        When the content is not of this format, or holds something that is not plain data.
    """
    reader = _Reader(memoryview(content))
    if bytes(reader.take(2)) != b"B\n" or reader.integer() not in (2, 3):
        raise InvalidArgument("not an R object in the format of serialize(xdr = FALSE, version = 2)")
    reader.take(8)
    try:
        return reader.item()
    except (struct.error, IndexError, UnicodeDecodeError) as problem:
        raise InvalidArgument("the R object is cut off or damaged") from problem


class _Reader:
    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0
        self._symbols: list[str] = []

    def take(self, size: int) -> memoryview:
        part = self._content[self._at : self._at + size]
        if len(part) != size:
            raise InvalidArgument("the R object is cut off")
        self._at += size
        return part

    def integer(self) -> int:
        return int(struct.unpack("<i", self.take(4))[0])

    def length(self) -> int:
        size = self.integer()
        if size == -1:  # a long vector: the upper and the lower 32 bits
            return (self.integer() << 32) + (self.integer() & 0xFFFFFFFF)
        return size

    def item(self) -> Any:
        flags = self.integer()
        kind = flags & 255
        if kind == _NULL:
            return None
        if kind in _KINDS:
            dtype = np.dtype("<f8" if kind == _DOUBLE else "<i4")
            size = self.length()
            values = np.frombuffer(self.take(size * dtype.itemsize), dtype=dtype)
            return RVector(_KINDS[kind], values, self.attributes(flags))
        if kind == _STRINGS:
            texts = [self.text() for _ in range(self.length())]
            return RVector("character", texts, self.attributes(flags))
        if kind == _LIST:
            items = [self.item() for _ in range(self.length())]
            return RList(items, self.attributes(flags))
        if kind == _RAW:
            content = bytes(self.take(self.length()))
            self.attributes(flags)
            return content
        if kind == _SYMBOL:
            self._symbols.append(self.text() or "NA")
            return self._symbols[-1]
        if kind == _REFERENCE:
            return self._symbols[(flags >> 8 or self.integer()) - 1]
        raise InvalidArgument(
            f"R objects of type {kind} are not plain data; give vectors, lists, data frames"
        )

    def text(self) -> str | None:
        flags = self.integer()
        if flags & 255 != _CHARS:
            raise InvalidArgument("the R object is damaged: a string was expected")
        size = self.integer()
        return None if size == -1 else str(self.take(size), "latin-1" if flags & _LATIN1 else "utf-8")

    def attributes(self, flags: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if not flags & _HAS_ATTRIBUTES:
            return found
        while True:
            node = self.integer()
            if node & 255 == _NULL:
                return found
            if node & 255 != _PAIRS or not node & _HAS_TAG or node & _HAS_ATTRIBUTES:
                raise InvalidArgument("the R object is damaged: an attribute was expected")
            name = self.item()
            found[str(name)] = self.item()


# ------------------------------------------------------------------------------- writing


def encode(value: Any) -> bytes:
    """Return plain Python data as R's `unserialize()` reads it.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, bytes; a NumPy array (matrices too); a sequence; a mapping (a named
        list); a pandas Series or DataFrame. Sequences of one type become vectors, other ones lists.
        Missing values become NA.

    Raises
    ------
    InvalidArgument
        When the value holds something that is not plain data, or a whole number beyond 2**53.
    """
    parts = [_HEADER]
    _write(value, parts)
    return b"".join(parts)


def _write(value: Any, out: list[bytes]) -> None:
    if value is None:
        out.append(_word(_NULL))
    elif isinstance(value, bytes | bytearray):
        out.append(struct.pack("<ii", _RAW, len(value)) + bytes(value))
    elif isinstance(value, RVector):
        _write_vector(value, out)
    elif isinstance(value, pd.DataFrame):
        _write_frame(value, out)
    elif isinstance(value, pd.Series | pd.Index):
        _write_column(value, out)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        _write_array(value, out)
    elif isinstance(value, Mapping):
        _write_list(list(value.values()), {"names": [str(key) for key in value]}, out)
    elif isinstance(value, bool | int | float | str | np.generic):
        _write_sequence([value], out)
    elif isinstance(value, Sequence | np.ndarray):
        _write_sequence(list(value), out)
    else:
        raise InvalidArgument(f"{type(value).__name__} is not plain data and cannot travel to R")


def _write_vector(vector: RVector, out: list[bytes]) -> None:
    """Write a vector that is in R's own terms already."""
    if vector.kind == "character":
        _write_strings(vector.values, vector.attributes, out)
        return
    code, dtype = {"logical": (_LOGICAL, "<i4"), "integer": (_INTEGER, "<i4"), "double": (_DOUBLE, "<f8")}[
        vector.kind
    ]
    _write_numbers(code, np.asarray(vector.values, dtype=dtype), vector.attributes, out)


def _write_sequence(values: list[Any], out: list[bytes]) -> None:
    plain = [item.item() if isinstance(item, np.generic) else item for item in values]
    known = [item for item in plain if item is not None and item is not pd.NA]
    if known and all(isinstance(item, str) for item in known):
        _write_strings([item if isinstance(item, str) else None for item in plain], {}, out)
    elif known and all(isinstance(item, bool) for item in known):
        _write_array(_filled(plain, False, bool), out, _absent(plain))
    elif known and all(isinstance(item, int) and not isinstance(item, bool) for item in known):
        _write_array(_filled(plain, 0, np.int64), out, _absent(plain))
    elif known and all(isinstance(item, int | float) and not isinstance(item, bool) for item in known):
        _write_array(_filled(plain, 0.0, np.float64), out, _absent(plain))
    else:
        _write_list(plain, {}, out)


def _absent(values: list[Any]) -> Any:
    return np.array([item is None or item is pd.NA for item in values], dtype=bool)


def _filled(values: list[Any], filler: Any, dtype: Any) -> Any:
    try:
        return np.array([filler if item is None or item is pd.NA else item for item in values], dtype=dtype)
    except OverflowError:
        raise InvalidArgument("a whole number beyond 2**53 has no exact counterpart in R") from None


def _write_array(
    values: Any, out: list[bytes], absent: Any = None, extra: Mapping[str, Any] | None = None
) -> None:
    attributes = dict(extra or {})
    if values.ndim > 1:
        attributes["dim"] = np.array(values.shape, dtype=np.int32)
        values = values.ravel(order="F")  # R stores columns one after the other
    kind = values.dtype.kind
    if kind == "U":
        _write_strings([str(item) for item in values], attributes, out)
    elif kind == "M":
        attributes |= {"class": ["POSIXct", "POSIXt"], "tzone": "UTC"}
        _write_numbers(_DOUBLE, _seconds(values, "datetime64[us]"), attributes, out)
    elif kind == "m":
        attributes |= {"class": "difftime", "units": "secs"}
        _write_numbers(_DOUBLE, _seconds(values, "timedelta64[us]"), attributes, out)
    elif kind == "b":
        codes = values.astype("<i4")
        codes = codes if absent is None else np.where(absent, NA_INTEGER, codes).astype("<i4")
        _write_numbers(_LOGICAL, codes, attributes, out)
    elif kind in "iu":
        _write_whole(values, absent, attributes, out)
    elif kind == "f":
        numbers = values.astype("<f8")
        if absent is not None:
            numbers = numbers.copy()
            numbers.view("<i8")[absent] = NA_DOUBLE_BITS
        _write_numbers(_DOUBLE, numbers, attributes, out)
    else:
        raise InvalidArgument(f"arrays of dtype {values.dtype} are not plain data and cannot travel to R")


def _seconds(times: Any, unit: str) -> Any:
    """Return times as seconds; what is not a time as R's NA, not as NaN."""
    seconds = (times.astype(unit).astype(np.int64) / 1e6).astype("<f8")
    seconds.view("<i8")[np.isnat(times)] = NA_DOUBLE_BITS
    return seconds


def _write_whole(values: Any, absent: Any, attributes: Mapping[str, Any], out: list[bytes]) -> None:
    """Write whole numbers as R integers where they fit, else as doubles where those are exact."""
    present = values if absent is None else values[~absent]
    if present.size == 0 or (present.min() > NA_INTEGER and present.max() < 2**31):
        codes = values.astype("<i4") if absent is None else np.where(absent, NA_INTEGER, values).astype("<i4")
        _write_numbers(_INTEGER, codes, attributes, out)
        return
    if max(abs(int(present.min())), abs(int(present.max()))) > 2**53:
        raise InvalidArgument("a whole number beyond 2**53 has no exact counterpart in R")
    numbers = values.astype("<f8")
    if absent is not None:
        numbers.view("<i8")[absent] = NA_DOUBLE_BITS
    _write_numbers(_DOUBLE, numbers, attributes, out)


def _write_column(values: pd.Series[Any] | pd.Index[Any], out: list[bytes]) -> None:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        series = pd.Series(values)
        codes = series.cat.codes.to_numpy().astype("<i4") + 1
        codes = np.where(codes == 0, NA_INTEGER, codes).astype("<i4")
        classes = ["ordered", "factor"] if dtype.ordered else ["factor"]
        levels = [str(level) for level in dtype.categories]
        _write_numbers(_INTEGER, codes, {"levels": levels or np.array([], dtype=str), "class": classes}, out)
        return
    if isinstance(dtype, pd.DatetimeTZDtype):
        values = pd.Series(values).dt.tz_convert("UTC").dt.tz_localize(None)
        _write_array(values.to_numpy(), out)
        return
    if pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype):
        gone = pd.isna(values)
        items = [None if empty else item for item, empty in zip(values, gone, strict=True)]
        if all(item is None or isinstance(item, str) for item in items):
            _write_strings(items, {}, out)
        else:
            _write_sequence(items, out)
        return
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        absent = np.asarray(pd.isna(values))
        plain: Any = pd.Series(values).fillna(False if dtype.kind == "b" else 0)
        own = {"b": np.bool_, "i": np.int64, "u": np.int64}.get(dtype.kind, np.float64)
        _write_array(plain.to_numpy(dtype=own), out, absent)
        return
    _write_array(np.asarray(values), out)


def _write_frame(frame: pd.DataFrame, out: list[bytes]) -> None:
    """Write a data frame; the index is not written."""
    names = [str(name) for name in frame.columns]
    rows = RVector("integer", np.array([NA_INTEGER, -len(frame)], dtype="<i4"))  # R's short form of 1..n
    out.append(struct.pack("<ii", _LIST | _IS_OBJECT | _HAS_ATTRIBUTES, len(names)))
    for position in range(len(names)):
        _write_column(frame.iloc[:, position], out)
    _write_attributes(
        {"names": names or np.array([], dtype=str), "row.names": rows, "class": "data.frame"}, out
    )


def _write_list(items: list[Any], attributes: Mapping[str, Any], out: list[bytes]) -> None:
    attributes = {name: item for name, item in attributes.items() if not (name == "names" and not items)}
    out.append(struct.pack("<ii", _LIST | _flags(attributes), len(items)))
    for item in items:
        _write(item, out)
    _write_attributes(attributes, out)


def _write_numbers(kind: int, values: Any, attributes: Mapping[str, Any], out: list[bytes]) -> None:
    out.append(_word(kind | _flags(attributes)) + _size(len(values)))
    out.append(values.tobytes())
    _write_attributes(attributes, out)


def _write_strings(values: Sequence[str | None], attributes: Mapping[str, Any], out: list[bytes]) -> None:
    out.append(_word(_STRINGS | _flags(attributes)) + _size(len(values)))
    out.extend(_chars(text) for text in values)
    _write_attributes(attributes, out)


def _write_attributes(attributes: Mapping[str, Any], out: list[bytes]) -> None:
    if not attributes:
        return
    for name, value in attributes.items():
        out.append(_word(_PAIRS | _HAS_TAG) + _word(_SYMBOL) + _chars(name))
        _write(value, out)
    out.append(_word(_NULL))


def _flags(attributes: Mapping[str, Any]) -> int:
    return (_HAS_ATTRIBUTES if attributes else 0) | (_IS_OBJECT if "class" in attributes else 0)


def _chars(text: str | None) -> bytes:
    if text is None:
        return struct.pack("<ii", _CHARS, -1)
    content = text.encode("utf-8")
    return struct.pack("<ii", _CHARS | (_ASCII if text.isascii() else _UTF8), len(content)) + content


def _word(value: int) -> bytes:
    return struct.pack("<i", value)


def _size(length: int) -> bytes:
    if length < 2**31:
        return struct.pack("<i", length)
    return struct.pack("<iiI", -1, length >> 32, length & 0xFFFFFFFF)
