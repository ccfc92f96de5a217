"""What a node of type python_scorer loads for a reward that is a function of another process: sluice.run(rewards={"NODE":
function}).

Any name of this module is a function with the parameters of the one that it asks for, over the socket that SLUICE_REWARDS names.
"""

import inspect
import json
import os
from multiprocessing.connection import Client
from typing import Any


class _Caller:
    def __init__(self) -> None:
        place = os.environ.get("SLUICE_REWARDS")
        if not place:
            raise RuntimeError("the rewards of this run are functions of a Python program, which is not there; go on with "
                               "sluice.resume(RUN, rewards={...})")
        key, _, address = place.partition(":")
        self._connection = Client(address, "AF_UNIX", authkey=bytes.fromhex(key))

    def ask(self, **request: Any) -> Any:
        self._connection.send_bytes(json.dumps(request).encode())
        reply = json.loads(self._connection.recv_bytes())
        if "error" in reply:
            # With the type of the original, so that the message of the run is that of the function.
            raise type(reply["error"], (Exception,), {"__module__": "builtins"})(reply["text"])
        return reply["value"]


class _Function:
    """One of the other process, with its parameters."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(one, kind, default=None if has_default else inspect.Parameter.empty)
             for one, kind, has_default in _caller.ask(signature=name)])

    def __call__(self, **arguments: Any) -> Any:
        return _caller.ask(call=self._name, arguments={key: value for key, value in arguments.items() if _is_plain(value)})


_caller = _Caller()


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False  # such as TRL's log_metric
    return True


def __getattr__(name: str) -> _Function:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Function(name)
