"""CSV bytes -> records -> float64, so that no record can disturb another or raise an error.

Ready-made readers infer a type from many cells at once, stop at a cell that does not fit, or
fail on a record that is longer than their buffer: each lets one row change what is read of the
others. Here the records are cut by the rules below, and each cell is converted by itself.

Records (RFC 4180, read leniently, the same as Python's `csv` module): a line feed, a carriage
return or both end a record, unless inside quotes. A quote opens a quoted field only as the
field's first byte; inside, two quotes are one; after the closing quote the field goes on as an
unquoted one, in which quotes are plain bytes. Every line is a record, also an empty one. A quote
that is never closed reaches to the end of the file, as in every CSV reader: a program that
writes CSV correctly never leaves one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..numerics.surfaces import FloatArray
from .arrow_columns import import_pyarrow

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NEWLINE, _COMMA, _QUOTE = 10, 44, 34
_CHUNK = 1 << 20
# A longer record is counted and is missing, so that memory stays bounded whatever the file holds.
LONGEST_RECORD = 1 << 22
# A number or a date with more bytes than this (padding included) is missing.
LONGEST_NUMBER = 512

# Numbers that cannot leave the range of float64 when they have at most `_SHORT` bytes.
_SHORT = 40
_SHORT_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$"
_ANY_NUMBER = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity))$"
# Truth values as pandas and R write them, in any case.
_TRUTH_WORDS = {"^(?i:true)$": 1.0, "^(?i:false)$": 0.0}
_NUMBER = re.compile(rf"{_ANY_NUMBER[1:-1]}|(?i:true|false)".encode())
_DATE_TIME = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9})[0-9]*)?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)


@dataclass(frozen=True)
class Cells:
    """The cells of one column: those of record i are `data[start[i]:stop[i]]`.

    `quoted` says which were written in quotes (the outer quotes are not part of the cell).
    """

    data: Bytes
    start: Positions
    stop: Positions
    quoted: Mask

    def gathered(self, keep: Mask) -> Any:
        """Return the cells as an Arrow large_string array, trimmed of blanks; empty where not `keep`.

        The bytes need not be valid UTF-8: nothing here decodes them.
        """
        pa = import_pyarrow()
        lengths = np.where(keep, self.stop - self.start, 0)
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        index = np.arange(offsets[-1], dtype=np.int64)
        index += np.repeat(self.start - offsets[:-1], lengths)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data[index])]
        text = pa.Array.from_buffers(pa.large_string(), len(lengths), buffers)
        return pa.compute.ascii_trim_whitespace(text)


@dataclass(frozen=True)
class Records:
    """Some complete records.

    Parameters
    ----------
    data : (bytes,) uint8 array
        Whole records, each ended by a line feed.
    ends : (m,) int array
        Positions of those line feeds.
    quotes : int array
        Positions of the quotes that open or close a quoted field, in turn.
    first_is_lost : bool
        The first record was too long to keep: only its end is here, and it is missing.
    """

    data: Bytes
    ends: Positions
    quotes: Positions
    first_is_lost: bool = False

    @cached_property
    def _commas(self) -> Positions:
        return _outside(np.flatnonzero(self.data == _COMMA), self.quotes)

    @cached_property
    def _commas_before(self) -> Positions:
        """Number of commas before the record's end, for each record."""
        return np.asarray(np.searchsorted(self._commas, self.ends))

    def fields_of_first(self) -> list[bytes]:
        """Return the first record's fields, unquoted."""
        stops = [*self._commas[self._commas < self.ends[0]].tolist(), int(self.ends[0])]
        starts = [0, *(stop + 1 for stop in stops[:-1])]
        return [_unquoted(self.data[a:b].tobytes()) for a, b in zip(starts, stops, strict=True)]

    def is_whole(self, width: int) -> Mask:
        """Return which records have exactly `width` fields and are not too long."""
        whole = np.diff(self._commas_before, prepend=0) == width - 1
        # A long record that happens to be here in full is missing as well: where the chunks of the
        # file are cut depends on the records before it.
        whole &= np.diff(self.ends, prepend=-1) <= LONGEST_RECORD
        if self.first_is_lost:
            whole[0] = False
        return np.asarray(whole)

    def cells(self, position: int, whole: Mask, width: int) -> Cells:
        """Return the cells at `position` of the records in `whole`, each of `width` fields."""
        ends = self.ends[whole]
        first_comma = np.concatenate(([0], self._commas_before[:-1]))[whole]
        if position == 0:
            start = np.concatenate(([0], self.ends[:-1] + 1))[whole]
        else:
            start = self._commas[first_comma + position - 1] + 1
        stop = ends if position == width - 1 else self._commas[first_comma + position]
        # The byte at `start` exists: at the least it is the record's line feed.
        quoted = (self.data[start] == _QUOTE) & (stop - start >= 2) & (self.data[stop - 1] == _QUOTE)
        return Cells(self.data, start + quoted, stop - quoted, quoted)


def read_records(stream: IO[bytes]) -> Iterator[Records]:
    """Yield the records of a CSV stream in order, a chunk at a time, the header among them."""
    kept = b""
    lost = False
    for chunk in _chunks(stream):
        text = kept + chunk
        data = np.frombuffer(text, dtype=np.uint8)
        quotes = _field_quotes(data)
        ends = _outside(np.flatnonzero(data == _NEWLINE), quotes)
        if ends.size:
            size = int(ends[-1]) + 1
            yield Records(data[:size], ends, quotes[quotes < size], first_is_lost=lost)
            kept, lost = text[size:], False
        else:
            kept = text
        # A record that is lost already needs no more than its quoting state.
        if lost or len(kept) > LONGEST_RECORD:
            inside = data[len(text) - len(kept) :]
            kept, lost = _state_after(inside, quotes[quotes >= len(text) - len(kept)]), True
    if kept:
        # A quote that was never closed: one record, which is missing.
        yield Records(np.frombuffer(b"\n", np.uint8), np.zeros(1, np.int64), np.empty(0, np.int64), True)


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes with every line end a line feed, also the last, and no byte order mark."""
    waiting = b""
    first, ended = True, True
    while chunk := stream.read(_CHUNK):
        chunk = waiting + chunk
        if first and len(chunk) < 3:
            waiting = chunk
            continue
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        # A carriage return at the end may be half of a line end.
        chunk, waiting = (chunk[:-1], b"\r") if chunk.endswith(b"\r") else (chunk, b"")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if chunk:
            ended = chunk.endswith(b"\n")
            yield chunk
    rest = waiting.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if rest or not ended:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def _field_quotes(data: Bytes) -> Positions:
    """Return the positions of the quotes that open or close a field; `data` begins a record.

    In well-formed CSV these are all the quotes (a doubled quote closes and opens again), and
    that is so exactly when each quote that opens by this count stands at the start of a field
    or right after one that closes. Only otherwise is each quote looked at in turn.
    """
    quotes = np.flatnonzero(data == _QUOTE)
    opening = quotes[::2]
    before = np.where(opening > 0, data[opening - 1], _NEWLINE)
    if bool(np.all((before == _COMMA) | (before == _NEWLINE) | (before == _QUOTE))):
        return quotes
    return _field_quotes_in_turn(data, quotes)


def _field_quotes_in_turn(data: Bytes, quotes: Positions) -> Positions:
    before = np.where(quotes > 0, data[quotes - 1], _NEWLINE)
    at_field_start = (before == _COMMA) | (before == _NEWLINE)
    # For each quote, the next one (or itself) that could open a field; plain quotes are jumped over.
    numbers = np.where(at_field_start, np.arange(len(quotes)), len(quotes))
    next_opening = np.minimum.accumulate(numbers[::-1])[::-1]
    follows = np.diff(quotes, prepend=-2) == 1
    kept = np.zeros(len(quotes), dtype=bool)
    number = int(next_opening[0])
    while number < len(quotes):
        kept[number] = True
        number += 1
        # Inside: the next quote closes, unless it is followed by another, which opens again.
        if number < len(quotes):
            kept[number] = True
            number += 1
            if number < len(quotes) and not follows[number]:
                number = int(next_opening[number])
    return np.asarray(quotes[kept])


def _outside(positions: Positions, quotes: Positions) -> Positions:
    """Return those positions that are outside quotes."""
    if quotes.size == 0:
        return positions
    return np.asarray(positions[np.searchsorted(quotes, positions) % 2 == 0])


def _state_after(data: Bytes, quotes: Positions) -> bytes:
    """Return the shortest bytes that leave the same quoting state as `data`, one unfinished record."""
    if quotes.size % 2:
        # Unless the last byte is the quote itself, the state is plainly "inside quotes"; if it is, the same.
        return b'"'
    if quotes.size and quotes[-1] == len(data) - 1:
        return b'""'
    return b"x," if data[-1] == _COMMA else b"x"


def _unquoted(cell: bytes) -> bytes:
    if len(cell) >= 2 and cell[:1] == cell[-1:] == b'"':
        return cell[1:-1].replace(b'""', b'"')
    return cell


def is_number(cell: bytes) -> bool:
    """Whether a cell is a number or a truth value by the grammar of `numbers_of`, or "nan"."""
    text = cell.strip()
    return text.lower() == b"nan" or _NUMBER.fullmatch(text) is not None


def numbers_of(cells: Cells) -> FloatArray:
    """Return each cell as a float64; NaN when it is not a decimal number, an infinity or a truth value.

    "true" and "false" in any case (pandas writes True, R writes TRUE) are 1 and 0, whatever stands in other
    cells. Blanks around a cell, a sign, "1e5", ".5", "5." and "inf" are fine; digit groups ("1_000",
    "1,000"), hexadecimal numbers, units and other words ("T", "yes") are missing. A number
    beyond float64 is infinite.
    """
    pa = import_pyarrow()
    text = cells.gathered(cells.stop - cells.start <= LONGEST_NUMBER)
    lengths = np.diff(_offsets(text))
    short = _as_mask(pa.compute.match_substring_regex(text, _SHORT_NUMBER)) & (lengths <= _SHORT)
    out = _cast_where(text, short)
    rest = ~short & (lengths > 0)
    if rest.any():
        # Whether a cell comes here depends on that cell alone, and both ways round correctly.
        long = rest & _as_mask(pa.compute.match_substring_regex(text, _ANY_NUMBER))
        for i in np.flatnonzero(long).tolist():
            out[i] = float(_cell_bytes(text, i))
        for word, value in _TRUTH_WORDS.items():
            out[rest & _as_mask(pa.compute.match_substring_regex(text, word))] = value
    return out


def _cast_where(text: Any, keep: Mask) -> FloatArray:
    """Convert the plain numbers in `keep`; NaN elsewhere."""
    pa = import_pyarrow()
    validity = pa.py_buffer(np.packbits(keep, bitorder="little"))
    _, offsets, data = text.buffers()
    masked = pa.Array.from_buffers(text.type, len(text), [validity, offsets, data], offset=text.offset)
    try:
        return np.array(masked.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        # An older pyarrow reads fewer spellings (no plus sign): the slow way gives the same numbers.
        out = np.full(len(text), math.nan)
        for i in np.flatnonzero(keep).tolist():
            out[i] = float(_cell_bytes(text, i))
        return out


def seconds_of(cells: Cells) -> FloatArray:
    """Return each cell, an ISO 8601 date or date and time, as seconds since 1970-01-01 UTC.

    A cell without a zone is in UTC. Anything else, also a day that does not exist, is NaN.
    """
    pa = import_pyarrow()
    text = cells.gathered(cells.stop - cells.start <= LONGEST_NUMBER)
    found = pa.compute.extract_regex(text, _DATE_TIME)
    ok = ~_as_mask(found.is_null())
    names = ("year", "month", "day", "hour", "minute", "second")
    part = {name: _integers(found.field(name), ok) for name in names}
    month = np.clip(part["month"], 1, 12)
    months = ((part["year"] - 1970) * 12 + month - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    after = (months + 1).astype("datetime64[D]").astype(np.int64)
    ok &= (part["month"] == month) & (part["day"] >= 1) & (part["day"] <= after - first)
    ok &= (part["hour"] < 24) & (part["minute"] < 60) & (part["second"] < 60)
    offset, offset_ok = _zone_seconds(found.field("zone"))
    whole = (first + part["day"] - 1) * 86400 + part["hour"] * 3600 + part["minute"] * 60 + part["second"]
    seconds = (whole - offset) + _fractions(found.field("fraction"))
    return np.where(ok & offset_ok, seconds, np.nan)


def keys_of(cells: Cells) -> Any:
    """Return each cell as an Arrow large_binary value, null when empty: the key of a person."""
    pa = import_pyarrow()
    text = cells.gathered(np.ones(len(cells.start), dtype=bool))
    if cells.quoted.any():
        # Two spellings of one value, with and without quotes, are one key.
        doubled = pa.compute.replace_substring(text, '""', '"')
        text = pa.compute.if_else(pa.array(cells.quoted), doubled, text)
    empty = pa.array(np.diff(_offsets(text)) == 0)
    return pa.compute.if_else(empty, pa.scalar(None, pa.large_binary()), text.view(pa.large_binary()))


def _offsets(text: Any) -> Positions:
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int64)
    return offsets[text.offset : text.offset + len(text) + 1]


def _cell_bytes(text: Any, i: int) -> bytes:
    offsets = _offsets(text)
    return bytes(text.buffers()[2][int(offsets[i]) : int(offsets[i + 1])])


def _as_mask(array: Any) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool)


def _integers(digits: Any, ok: Mask) -> Positions:
    """Return strings of digits as integers: 0 where not `ok` or not given."""
    pa = import_pyarrow()
    given = pa.compute.if_else(pa.array(ok & (np.diff(_offsets(digits)) > 0)), digits, "0")
    return np.asarray(given.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _fractions(digits: Any) -> FloatArray:
    pa = import_pyarrow()
    padded = pa.compute.utf8_rpad(digits.fill_null(""), 9, "0")
    return np.asarray(padded.cast(pa.int64()).to_numpy(zero_copy_only=False)) / 1e9


def _zone_seconds(zone: Any) -> tuple[Positions, Mask]:
    """Return the offsets from UTC in seconds and whether each is an hour below 24 and a minute below 60."""
    pa = import_pyarrow()
    digits = pa.compute.replace_substring_regex(zone.fill_null(""), "[^0-9]", "")
    padded = pa.compute.utf8_rpad(digits, 4, "0").cast(pa.int64())
    value = np.asarray(padded.to_numpy(zero_copy_only=False))
    hours, minutes = value // 100, value % 100
    negative = _as_mask(pa.compute.starts_with(zone.fill_null(""), "-"))
    return (hours * 3600 + minutes * 60) * np.where(negative, -1, 1), (hours < 24) & (minutes < 60)
