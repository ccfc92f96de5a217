"""Functions of this process as rewards of a run.

A node of type python_scorer loads reward_relay.py in a process of its own, as it loads any file. That one asks here, over a
socket of the file system: {"signature": NAME} once, then {"call": NAME, "arguments": {...}} for each call; the answer is
{"value": ...} or {"error": TYPE, "text": ...}.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import pathlib
import secrets
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Client, Connection, Listener, Pipe, wait
from typing import Any

Reward = Callable[..., Any]
RELAY = pathlib.Path(__file__).resolve().parent / "reward_relay.py"
_SOCKET = "rewards"
_LONGEST_PATH = 107  # bytes, of a socket of Linux
_PATIENCE = 1.0  # seconds that the end of a run waits for a function, which nothing can interrupt


def overrides_for(rewards: Mapping[str, Reward]) -> dict[str, Any]:
    """The keys with which these nodes ask here."""
    overrides: dict[str, Any] = {}
    for node in rewards:
        overrides |= {f"nodes.{node}.type": "python_scorer", f"nodes.{node}.file": str(RELAY).replace("$", "$$"),
                      f"nodes.{node}.function": node, f"nodes.{node}.python": sys.executable}
    return overrides


class RewardServer:
    """Calls the functions for a run, on a thread for each process that asks. Ends with close()."""

    def __init__(self, rewards: Mapping[str, Reward]) -> None:
        self._rewards = dict(rewards)
        self._folder = _folder_for_a_socket()
        key = secrets.token_bytes(32)
        self._listener = Listener(os.path.join(self._folder, _SOCKET), "AF_UNIX", authkey=key)
        self._ended, self._end = Pipe(duplex=False)  # has something to read, which nobody takes, once the run has ended
        self._threads: list[threading.Thread] = []
        self.raised: BaseException | None = None  # by a function, the last
        self.environment = {"SLUICE_REWARDS": f"{key.hex()}:{self._listener.address}"}
        self._start(self._listen)

    def close(self) -> None:
        """Ends its threads. One that is in a function for longer ends when that returns."""
        self._end.send_bytes(b"end")
        with contextlib.suppress(OSError):
            Client(self._listener.address, "AF_UNIX").close()  # wakes accept(), which would sleep on were the listener closed
        until = time.monotonic() + _PATIENCE
        for thread in self._threads:  # the one that listens is the first, and starts no others after its end
            thread.join(max(0.0, until - time.monotonic()))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _listen(self) -> None:
        with self._listener:
            while not self._ended.poll():
                try:
                    connection = self._listener.accept()
                except Exception:  # someone without the key, or who has hung up, such as close()
                    continue
                self._start(self._serve, connection)

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with connection, contextlib.suppress(OSError, EOFError):  # whoever asked has ended
            while self._ended not in wait([connection, self._ended]):
                request = json.loads(connection.recv_bytes())
                connection.send_bytes(json.dumps(self._answer(request)).encode())

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if "signature" in request:
                return {"value": _signature(self._rewards[request["signature"]])}
            value = self._rewards[request["call"]](**request["arguments"])
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value))
            json.dumps(value := _plain(value))
            return {"value": value}
        except BaseException as error:  # sys.exit() too would end but this thread, and the run would not know why
            self.raised = error
            return {"error": type(error).__name__, "text": str(error) + _place(error)}


def _folder_for_a_socket() -> str:
    """That nobody else may enter; in /tmp where TMPDIR is too long for the path of a socket."""
    folder = tempfile.mkdtemp(prefix="sluice-")
    if len(os.fsencode(os.path.join(folder, _SOCKET))) <= _LONGEST_PATH:
        return folder
    os.rmdir(folder)
    return tempfile.mkdtemp(prefix="sluice-", dir="/tmp")


async def _awaited(value: Any) -> Any:
    return await value


def _signature(function: Reward) -> list[tuple[str, int, bool]]:
    """Name, kind, and whether it has a default, of each parameter."""
    parameters = inspect.signature(function).parameters.values()
    return [(one.name, int(one.kind), one.default is not inspect.Parameter.empty) for one in parameters]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
