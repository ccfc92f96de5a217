"""Lines of JSON in a file that may grow while it is read."""

from __future__ import annotations

import itertools
import json
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple


def rows_of(file: pathlib.Path) -> list[dict[str, Any]]:
    """Those of its whole lines. None where there is no such file. Raises ValueError, with the place, where one is damaged."""
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        return []
    with opened:
        return [_row(line, file, number) for number, line in enumerate(_whole_lines(opened), 1)]


class GrowingFile:
    """Rows as they come: each look reads what is new.

    A resume cuts a file to what its checkpoint had, or begins it anew. Lines that differ from those that were read come once
    more.
    """

    def __init__(self, file: pathlib.Path) -> None:
        self._file = file
        self._read: list[_Line] = []

    def new_rows(self) -> list[dict[str, Any]]:
        """Of the lines that are whole by now. Raises ValueError, with the place, where one is damaged."""
        try:
            file = self._file.open("rb")
        except FileNotFoundError:
            return []
        with file:
            while self._read and not self._read[-1].is_in(file):
                self._read.pop()
            return self._rows_behind(file, self._read[-1].end if self._read else 0)

    def _rows_behind(self, file: BinaryIO, begin: int) -> list[dict[str, Any]]:
        rows = []
        file.seek(begin)
        for line in _whole_lines(file):
            rows.append(_row(line, self._file, len(self._read) + 1))
            self._read.append(_Line(begin, begin + len(line), zlib.crc32(line)))
            begin += len(line)
        return rows


class _Line(NamedTuple):
    begin: int
    end: int
    checksum: int

    def is_in(self, file: BinaryIO) -> bool:
        file.seek(self.begin)
        return zlib.crc32(file.read(self.end - self.begin)) == self.checksum


def _row(line: bytes, file: pathlib.Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{file}:{number} is damaged: {error}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{file}:{number} is damaged: no JSON object")
    return row


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Up to one that is still being written, whose rest could be there as the next by now.

    As bytes: splitlines() of a text also cuts at what Unicode ends lines with, such as U+2028.
    """
    return itertools.takewhile(lambda line: line.endswith(b"\n"), file)
