"""What goes wrong, in the words of the command line."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice._pipeline import Problem

WRONG = (64, 78)  # exit codes of rlhf-run: the command line; the pipeline, a model folder or data


class SluiceError(Exception):
    """The text is what rlhf-run wrote to stderr; `code` its exit code, negative for a signal that killed it, which the text then
    names."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class PipelineError(SluiceError):
    """The pipeline, a model folder or data are wrong: nothing was run. `validate` gives the problems one by one."""

    def __init__(self, text: str, code: int, problems: Sequence[Problem] = ()) -> None:
        super().__init__(text, code)
        self.problems = list(problems)


class RunError(SluiceError):
    """A run that began and failed, or was interrupted. Its last checkpoint is where `resume` goes on."""


def error_of(text: str, code: int) -> SluiceError:
    """Of a program that ended with this code, which is not 0."""
    text = text.rstrip("\n")
    ended = f"rlhf-run ended with code {code}"
    if code < 0:
        ended = f"rlhf-run was killed by signal {_signal_name(-code)}"
    elif code > 128:
        ended = f"rlhf-run was interrupted by signal {_signal_name(code - 128)}"
    if not text:
        text = f"{ended}, and said nothing"
    elif code < 0:  # of which it could not write itself
        text = f"{ended}; it said before:\n{text}"
    return PipelineError(text, code) if code in WRONG else RunError(text, code)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most of those for real time have none
        return str(number)
