"""Round values for tables: inside, about as many as asked for, and round on the column's own scale."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pydpmode.results.clean_values import clean_text, clean_values
from pydpmode.results.coordinates import Coordinate

NUMBER = Coordinate.plain("age")
LOG = Coordinate("log(wage)", "wage", "log", "number")
DATE = Coordinate("day", "day", "identity", "datetime")
SPAN = Coordinate("wait", "wait", "identity", "timedelta")


def texts(coordinate: Coordinate, low: float, high: float, count: int) -> list[str]:
    return [clean_text(coordinate, value) for value in clean_values(coordinate, low, high, count)]


def second(date: str) -> float:
    return float(np.datetime64(date, "s").astype(np.int64))


def test_ages_are_tens() -> None:
    assert texts(NUMBER, 15, 90, 9) == ["20", "30", "40", "50", "60", "70", "80"]
    assert texts(NUMBER, 15, 90, 3) == ["25", "50", "75"]


def test_numbers_have_no_stray_digits() -> None:
    assert texts(NUMBER, 0, 1, 9) == [f"0.{k}" for k in range(1, 10)]
    assert texts(NUMBER, -1, 2.5, 9) == ["-0.5", "0", "0.5", "1", "1.5", "2"]
    assert texts(NUMBER, 1e-3, 1.3e-3, 3) == ["0.0011", "0.0012"]
    assert texts(NUMBER, 1e9, 1e9 + 3, 2) == ["1000000001", "1000000002"]


def test_wages_are_one_two_five() -> None:
    found = texts(LOG, math.log(1001), math.log(300_000), 9)
    assert found == ["2000", "5000", "10000", "20000", "50000", "100000", "200000"]
    assert texts(LOG, 0, math.log(3.01), 9)[:3] == ["1.2", "1.4", "1.6"]
    assert texts(LOG, math.log(1e-6), math.log(1e9), 9)[1:3] == ["0.01", "1"]


def test_dates_begin_months_and_years() -> None:
    year = texts(DATE, second("2024-01-01"), second("2024-12-31"), 9)
    assert year == [f"2024-{month:02}-01" for month in range(2, 13)]
    assert texts(DATE, second("1950-01-01"), second("2024-03-01"), 9) == [
        f"{year}-01-01" for year in range(1960, 2030, 10)
    ]
    day = texts(DATE, second("2024-01-01"), second("2024-01-02"), 3)
    assert day == ["2024-01-01 06:00", "2024-01-01 12:00", "2024-01-01 18:00"]
    # Days are counted from the first of each month, and no stub is left at its end.
    assert "2024-01-31" not in texts(DATE, second("2024-01-01"), second("2024-03-01"), 9)


def test_durations_are_round_in_their_unit() -> None:
    assert texts(SPAN, 0, 3600, 5) == ["10 min", "20 min", "30 min", "40 min", "50 min"]
    assert texts(SPAN, 0, 0.5, 3) == ["100 ms", "200 ms", "300 ms", "400 ms"]
    assert texts(SPAN, -60, 60, 3)[1] == "0"


@pytest.mark.parametrize("coordinate", [NUMBER, LOG, DATE, SPAN])
def test_values_are_inside_ascending_and_about_as_many(coordinate: Coordinate) -> None:
    random = np.random.default_rng(4)
    for _ in range(200):
        middle, width = random.normal() * 10 ** random.uniform(-2, 1), 10 ** random.uniform(-2, 1)
        if coordinate.kind == "datetime":
            middle, width = middle * 1e8, 10 ** random.uniform(2, 9)
        low, high = middle - width, middle + width
        for count in (2, 3, 9):
            found = clean_values(coordinate, low, high, count)
            assert ((found >= low) & (found <= high)).all()
            assert (np.diff(found) > 0).all()
            assert 1 <= found.size <= 2 * count + 1
