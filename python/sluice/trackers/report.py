"""What the process that tells one tracker reports to the one that watches over it: a line each, of a kind and a text."""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Iterator


class Kind(enum.Enum):
    CALLS = "calls"  # the client, and
    RETURNED = "returned"  # it did
    WARNS = "warns"
    FAILED = "failed"  # and why: it tells no more
    TOLD_ALL = "told-all"


class Reporter:
    """The end that reports."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Around all that a client may hang in."""
        self.report(Kind.CALLS)
        yield
        self.report(Kind.RETURNED)

    def report(self, kind: Kind, text: str = "") -> None:
        line = " ".join([kind.value, *text.split()])
        os.write(self._pipe, (line + "\n").encode("utf-8", "backslashreplace"))


class Reports:
    """The end that reads, without waiting."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._begun = b""  # of a line that is not whole

    def new(self) -> Iterator[tuple[Kind, str]]:
        with contextlib.suppress(BlockingIOError):
            while read := os.read(self._pipe, 1 << 16):
                *lines, self._begun = (self._begun + read).split(b"\n")
                for line in lines:
                    kind, _, text = line.decode().partition(" ")
                    yield Kind(kind), text
