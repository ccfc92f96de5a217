"""Pipelines as the program takes them, and what it says of them without running them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, Union

from sluice import _toml
from sluice._program import environment, startable_program
from sluice.errors import PipelineError, error_of

# A file, "builtin:NAME", or the tables of a pipeline as a dictionary, whose relative paths start at the current folder.
Pipeline = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Path = Union[str, "os.PathLike[str]"]


class Problem(TypedDict):
    """One problem, as `rlhf-run validate --format json` has it."""

    kind: str
    severity: str
    file: str
    line: int
    column: int
    message: str
    caret: str
    notes: list[str]
    help: str


@contextlib.contextmanager
def file_of(pipeline: Pipeline) -> Iterator[str]:
    """A name that the program takes. A dictionary is a file of the current folder meanwhile.

    What has no name is called after its file, up to the last dot: `pipeline`, whatever follows.
    """
    if not isinstance(pipeline, Mapping):
        yield operand_of(pipeline)
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=".", prefix="pipeline.") as file:
        file.write(_toml.document_of(pipeline))
        file.flush()
        yield os.path.basename(file.name)


def without_file_name(text: str, pipeline: Pipeline, file: str) -> str:
    """What the program says of a dictionary, which it was given as a file whose name nobody has chosen."""
    return text.replace(file, "<pipeline>") if isinstance(pipeline, Mapping) else text


def operand_of(path: Path) -> str:
    """As the program takes it for no option, whatever it begins with."""
    name = os.fspath(path)
    return f"./{name}" if name.startswith("-") else name


def words_of(overrides: Mapping[str, Any] | None, plugins: Sequence[Path] = ()) -> list[str]:
    """The options for them; None as a value removes the key."""
    words = []
    for key, value in (overrides or {}).items():
        words += ["--set", f"{key}=" if value is None else f"{key}={_toml.text_of(value)}"]
    for plugin in plugins:
        words += ["--plugin", os.fspath(plugin)]
    return words


def _called(command: str, pipeline: Pipeline, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    with file_of(pipeline) as file:
        done = subprocess.run([startable_program(), command, file, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, encoding="utf-8", errors="replace", env=environment(), check=False)
    done.stdout, done.stderr = (without_file_name(text, pipeline, file) for text in (done.stdout, done.stderr))
    return done


def _planned(pipeline: Pipeline, words: Sequence[str]) -> dict[str, Any]:
    done = _called("plan", pipeline, [*words, "--format", "json"])
    if done.returncode != 0:
        raise error_of(done.stderr, done.returncode)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def name_of(file: str, words: Sequence[str], ranks: int) -> str:
    """What the program calls this pipeline. Raises PipelineError where it is wrong."""
    plan = _planned(file, [*words, *(["--ranks", str(ranks)] if ranks != 1 else [])])
    return str(plan["pipeline"]["name"])


def plan(pipeline: Pipeline, overrides: Mapping[str, Any] | None = None, *, plugins: Sequence[Path] = ()) -> dict[str, Any]:
    """What would run where, in which order and with how much memory, as `rlhf-run plan --format json` says it.

    Raises PipelineError with the text of the command line where the pipeline is wrong.
    """
    return _planned(pipeline, words_of(overrides, plugins))


def validate(pipeline: Pipeline, overrides: Mapping[str, Any] | None = None, *, data: bool = False,
             plugins: Sequence[Path] = ()) -> list[Problem]:
    """Proves a pipeline without running it; returns the warnings. With `data` every row of the data is looked at.

    Raises PipelineError with the text of the command line, and with every problem in `problems`.
    """
    words = [*words_of(overrides, plugins), *(["--data"] if data else [])]
    done = _called("validate", pipeline, [*words, "--format", "json"])
    try:
        problems: list[Problem] = json.loads(done.stdout)["problems"]
    except ValueError:
        raise error_of(done.stderr, done.returncode) from None
    if done.returncode != 0:
        told = _called("validate", pipeline, words)
        raise PipelineError(told.stderr.rstrip("\n"), done.returncode, problems)
    return problems
