"""Rows of lines of JSON as columns."""

from __future__ import annotations

from typing import Any

_NOT_FINITE = ("nan", "inf", "-inf")  # how JSON lines of a run write these numbers
# the columns of one number a sample or prompt that may have no finite one
_SCORES = ("score", "environment_score", "baseline_score")


def columns_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """{name: one entry a row}: NumPy arrays, or lists where NumPy is not installed.

    Numbers are float64 or int64, also those that a line can only write as a text ("nan"). Texts, and lists of which each row has
    one of its own length, are arrays of objects.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _array(values_of(name, rows)) for name in names}


def values_of(name: str, rows: list[dict[str, Any]]) -> list[Any]:
    """Of one column, an entry a row, with numbers where a line can only write a text ("nan")."""
    values = [row.get(name) for row in rows]
    return [_as_number(value) for value in values] if _has_numbers(name, values) else values


def _has_numbers(name: str, values: list[Any]) -> bool:
    """A label may well be "nan". So where no entry is a finite number, only scores and lists are taken for numbers."""
    entries = (entry for value in values for entry in (value if isinstance(value, list) else [value]))
    if any(isinstance(entry, str) and entry not in _NOT_FINITE for entry in entries):
        return False
    return name in _SCORES or any(isinstance(one, (int, float, list)) for one in values)


def _as_number(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_number(one) for one in value]
    return float(value) if value in _NOT_FINITE else value


def _array(values: list[Any]) -> Any:
    try:
        import numpy
    except ImportError:
        return values
    if all(isinstance(value, (int, float)) for value in values):
        return numpy.array(values)
    array = numpy.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = numpy.array(value) if isinstance(value, list) else value
    return array
