"""A process for each tracker, and one that watches over them: a client that hangs, crashes or ends its process takes no other
along."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator

from sluice.trackers.report import Kind, Reporter, Reports

_LOOK = 0.5  # seconds between two looks at what they report
_PR_SET_PDEATHSIG = 1
_AWAITED = {signal.SIGCHLD, signal.SIGTERM}


class Teller:
    """The process that tells one tracker. In it `tell` is called with where to report to, and a descriptor that ends with the
    run."""

    def __init__(self, name: str, remedy: str, tell: Callable[[Reporter, int], None]) -> None:
        self.name = name
        self._remedy = remedy  # for what it does not tell
        self.told_all = False
        self.ended = False
        self._explained = False  # why it tells no more
        self._called: float | None = None  # when its client was, which has not returned
        self._silence: float | None = None  # in seconds, that is told next; None: the first
        self._pipe, far_end = os.pipe()
        watcher = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            _be_teller(watcher, tell, far_end)
        os.close(far_end)
        self._reports = Reports(self._pipe)

    def warnings(self) -> Iterator[str]:
        """What there is to say of it since the last look. It may have ended."""
        process, status = os.waitpid(self._process, os.WNOHANG)  # before its reports, so that none comes after the last look
        yield from self.reported()
        if process == 0:
            return
        self.ended = True
        os.close(self._pipe)
        if not self.told_all and not self._explained:
            yield f"{self.name} is told no more of this run: the process that tells it {_how_it_ended(status)}{self._remedy}"

    def reported(self) -> Iterator[str]:
        for kind, text in self._reports.new():
            self._called = time.monotonic() if kind is Kind.CALLS else None
            self.told_all |= kind is Kind.TOLD_ALL
            self._explained |= kind is Kind.FAILED
            if text:
                yield text + self._remedy * (kind is Kind.FAILED)

    def newly_silent(self, patience: float) -> float | None:
        """Seconds since its client was called that has not returned: when they are `patience`, and whenever they have doubled."""
        due = self._silence or patience
        if self.ended or self._called is None or time.monotonic() - self._called < due:
            return None
        self._silence = 2 * due
        return due


def await_signals() -> None:
    """Those that watch() waits for are blocked, from before the first Teller."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who started us may have ignored it, which would hide how processes end
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)


def watch(tellers: list[Teller], look: Callable[[Teller], None]) -> bool:
    """Has each that has not ended looked at, twice a second. Until all have, or this process is told to end (False)."""
    while waiting := [teller for teller in tellers if not teller.ended]:
        came = signal.sigtimedwait(_AWAITED, _LOOK)
        if came is not None and came.si_signo == signal.SIGTERM:
            return False
        for teller in waiting:
            look(teller)
    return True


def _be_teller(watcher: int, tell: Callable[[Reporter, int], None], pipe: int) -> None:
    """Never returns. It dies with the watcher. A client finds no input, and what it prints goes nowhere."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == watcher:  # else it died before
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
            over = os.dup(0)
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in range(3):
                os.dup2(nothing, standard)
            tell(Reporter(pipe), over)
            code = 0
    finally:
        os._exit(code)  # whatever threads the client has left running


def _how_it_ended(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exited with code {code}" if code >= 0 else f"was killed by signal {-code} ({signal.strsignal(-code)})"
