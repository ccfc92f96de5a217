"""A run: its process, and what its folder says while it goes on and afterwards."""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from sluice import _lines, _pipeline, _rewards, _samples
from sluice._program import environment, startable_program
from sluice.errors import error_of

_POLL = 0.05  # seconds between two looks at a file that grows
_STATUS = "status.json"  # which a run writes when its models are loaded, and the files of its nodes opened


class Run:
    """A run folder, and the process that writes it where this program has started one.

    Iterating gives the metrics of each iteration as it ends, from the first that the folder has; when the run has ended, so does
    the loop, or it raises RunError. Leaving `with` stops a run that goes on, and so does the end of this process: it saves a
    checkpoint first. Used from one thread.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = pathlib.Path(folder).absolute()  # who follows it may go to another folder
        self._process: subprocess.Popen[str] | None = None
        self._server: _rewards.RewardServer | None = None
        self._readers: list[threading.Thread] = []
        self._output: list[str] = []
        self._errors: list[str] = []
        self._stopped = False
        self._raised: BaseException | None = None  # by a reward

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        file = _lines.GrowingFile(self.folder / "metrics.jsonl")
        while True:
            running = self.running  # before the look, so that what was written last is seen
            yield from file.new_rows()
            if not running:
                break
            time.sleep(_POLL)
        self.wait()
        self._check_folder()  # now: what the program says of a folder that is gone comes first

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> str:
        """What the program has printed; of a run that has ended its summary is at the end."""
        return "".join(self._output)

    @property
    def checkpoint(self) -> pathlib.Path:
        """The newest: a folder in the form of Hugging Face for each trained model."""
        return self.folder / "checkpoint"

    def metrics(self) -> list[dict[str, Any]]:
        """The metrics of each iteration that has ended, as metrics.jsonl has them. Raises FileNotFoundError where the folder is
        of no run."""
        self._check_folder()
        return _lines.rows_of(self.folder / "metrics.jsonl")

    def samples(self, file: str | None = None) -> dict[str, Any]:
        """The columns of what a node of type write_jsonl has written, as NumPy arrays; lists where NumPy is not installed.

        Without a name those of samples.jsonl, if there are any. Raises FileNotFoundError where the run has no file of that name.
        """
        self._check_folder()
        path = self.folder / (file or "samples.jsonl")
        opened = (self.folder / _STATUS).exists()
        if file is not None and opened and not path.exists():
            raise FileNotFoundError(f"{self.folder} has no {file}: no node of type write_jsonl has written it")
        return _samples.columns_of(_lines.rows_of(path))

    def wait(self) -> Run:
        """Until it has ended, by itself or by stop().

        Raises RunError where it failed, with what it wrote to stderr; its cause is what a reward has raised.
        """
        if self._process is None:
            return self
        code = self._process.wait()
        self._end()
        if code != 0 and not (self._stopped and code == 128 + signal.SIGTERM):
            raise error_of("".join(self._errors), code) from self._raised
        return self

    def stop(self) -> None:
        """Ends a run that goes on: what is in flight is finished, and a checkpoint is saved."""
        if self._process is None:
            return
        if self.running:
            self._stopped = True
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()
        self._end()

    def _check_folder(self) -> None:
        if not any((self.folder / name).exists() for name in ("metrics.jsonl", "pipeline.toml")):
            raise FileNotFoundError(f"{self.folder} is not the folder of a run: it has neither metrics.jsonl nor pipeline.toml")

    def _start(self, words: Sequence[str], rewards: Mapping[str, _rewards.Reward] | None, show: bool,
               said: Callable[[str], str] = str) -> None:
        variables = environment()
        if rewards:
            self._server = _rewards.RewardServer(rewards)
            variables |= self._server.environment
        try:
            # A session of its own, where Ctrl-C does not reach it: told twice, as stop() then tells it too, it would not save.
            self._process = subprocess.Popen([startable_program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", env=variables,
                                             start_new_session=True)
        except OSError:
            self._end()
            raise
        for stream, kept in ((self._process.stdout, self._output), (self._process.stderr, self._errors)):
            assert stream is not None
            self._readers.append(threading.Thread(target=_keep, args=(stream, kept, show, said), daemon=True))
            self._readers[-1].start()
        atexit.register(self.stop)

    def _wait_for_start(self, before: tuple[int, int] | None) -> None:
        """Until it has begun. Raises what was found wrong before; what goes wrong afterwards is for who follows it."""
        try:
            while self.running and _mark(self.folder / _STATUS) == before:
                time.sleep(_POLL)
        except BaseException:  # such as KeyboardInterrupt: nobody has the run yet to stop it
            self.stop()
            raise
        if _mark(self.folder / _STATUS) == before:
            self.wait()

    def _end(self) -> None:
        for reader in self._readers:
            reader.join()
        if self._server is not None:
            self._raised = self._server.raised
            self._server.close()
            self._server = None
        atexit.unregister(self.stop)


def run(pipeline: _pipeline.Pipeline, overrides: Mapping[str, Any] | None = None, *,
        run_dir: str | os.PathLike[str] | None = None, resume: bool = False, rewards: Mapping[str, _rewards.Reward] | None = None,
        ranks: int = 1, plugins: Sequence[str | os.PathLike[str]] = (), accept_changes: bool = False, show: bool = False) -> Run:
    """Starts a run and returns when it has begun. `for row in run` follows it, `run.wait()` waits for its end.

    pipeline   a file, "builtin:NAME", or the tables as a dictionary
    overrides  {"nodes.generate.max_new_tokens": 64}: as --set; None removes a key
    run_dir    the run folder; default: runs/NAME-TIME, with resume runs/NAME
    resume     goes on with what is in the run folder, or starts
    rewards    {NODE: function}: that node scores with a function of this process (docs/python.md)
    ranks      processes of this machine
    plugins    libraries to load
    accept_changes  with resume: goes on although the pipeline has changed in ways that change results
    show       print what the program prints

    Raises PipelineError where the pipeline, a model or data are wrong.
    """
    words = _pipeline.words_of({**(overrides or {}), **_rewards.overrides_for(rewards or {})}, plugins)
    options = [*(["--resume", "auto"] if resume else []), *(["--accept-changes"] if accept_changes else [])]
    with _pipeline.file_of(pipeline) as file:
        if run_dir is None and resume:
            run_dir = pathlib.Path("runs", _pipeline.name_of(file, words, ranks))
        elif run_dir is None:
            run_dir = _new_folder(_likely_name(pipeline, overrides or {}))
        started = Run(run_dir)
        before = _mark(started.folder / _STATUS)
        command = ["run"] if ranks == 1 else ["launch", "--ranks", str(ranks)]
        started._start([*command, file, *words, "--run-dir", os.fspath(run_dir), *options], rewards, show,
                       lambda line: _pipeline.without_file_name(line, pipeline, file))
        started._wait_for_start(before)
    return started


def resume(folder: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None, *,
           rewards: Mapping[str, _rewards.Reward] | None = None, accept_changes: bool = False, show: bool = False) -> Run:
    """Goes on with a run from its newest intact checkpoint, by the pipeline that its folder keeps. A run with `rewards` needs
    them again. Changes that change results need `accept_changes`."""
    going_on = Run(folder)
    before = _mark(going_on.folder / _STATUS)
    words = _pipeline.words_of({**(overrides or {}), **_rewards.overrides_for(rewards or {})})
    accepted = ["--accept-changes"] if accept_changes else []
    going_on._start(["resume", _pipeline.operand_of(folder), *words, *accepted], rewards, show)
    going_on._wait_for_start(before)
    return going_on


def _keep(stream: IO[str], kept: list[str], show: bool, said: Callable[[str], str]) -> None:
    with stream:
        for line in map(said, stream):
            kept.append(line)
            if show:
                _show(line)


def _show(line: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError, ValueError):  # it was closed, or nobody reads it any more: the run goes on
        print(line.encode(encoding, "backslashreplace").decode(encoding), end="", flush=True)


def _mark(file: pathlib.Path) -> tuple[int, int] | None:
    """What differs once the file was written anew."""
    try:
        told = file.stat()
    except OSError:
        return None
    return told.st_ino, told.st_mtime_ns


def _likely_name(pipeline: _pipeline.Pipeline, overrides: Mapping[str, Any]) -> str:
    """As far as it shows from here: the file, or one that it extends, may say another."""
    if overrides.get("pipeline.name"):
        return str(overrides["pipeline.name"])
    if not isinstance(pipeline, Mapping):
        return pathlib.Path(os.fspath(pipeline).removeprefix("builtin:")).stem
    table = pipeline.get("pipeline")
    return str(table.get("name", "pipeline")) if isinstance(table, Mapping) else "pipeline"


def _new_folder(name: str) -> pathlib.Path:
    wanted = pathlib.Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = wanted, 1
    while folder.exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder
