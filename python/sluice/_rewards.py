"""Functions of this process as rewards of a run.

A node of type python_scorer loads reward_relay.py in a process of its own, as it loads any file. That one asks here, over a socket of the
file system: {"signature": NAME} once, then {"call": NAME, "arguments": {...}} for each call; the answer is {"value": ...} or
{"error": TYPE, "text": ...}.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import pathlib
import secrets
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Listener
from typing import Any

Reward = Callable[..., Any]
RELAY = pathlib.Path(__file__).resolve().parent / "reward_relay.py"


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
        self._folder = tempfile.mkdtemp(prefix="sluice-")
        key = secrets.token_bytes(32)
        self._listener = Listener(os.path.join(self._folder, "rewards"), "AF_UNIX", authkey=key)
        self.raised: Exception | None = None  # by a function, the last
        self.environment = {"SLUICE_REWARDS": f"{key.hex()}:{self._listener.address}"}
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _listen(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError):
                return  # closed
            except Exception:  # someone without the key
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with connection:
            while True:
                try:
                    request = json.loads(connection.recv_bytes())
                    connection.send_bytes(json.dumps(self._answer(request)).encode())
                except (OSError, EOFError):
                    return  # its run has ended

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if "signature" in request:
                return {"value": _signature(self._rewards[request["signature"]])}
            value = self._rewards[request["call"]](**request["arguments"])
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value))
            json.dumps(value := _plain(value))
            return {"value": value}
        except Exception as error:
            self.raised = error
            return {"error": type(error).__name__, "text": str(error) + _place(error)}


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


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
