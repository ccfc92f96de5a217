"""Values of Python as TOML."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any


def text_of(value: Any) -> str:
    """One value, on one line."""
    if hasattr(value, "tolist"):  # of NumPy: a scalar or an array
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))  # a subclass may show itself otherwise
    if isinstance(value, os.PathLike):
        return text_of(os.fspath(value))
    if isinstance(value, str):
        return '"' + "".join(_escaped(character) for character in value) + '"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {text_of(one)}" for key, one in value.items()) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text_of(one) for one in value) + "]"
    raise TypeError(f"a pipeline has no value of type {type(value).__name__}: {value!r}")


def document_of(pipeline: Mapping[str, Any]) -> str:
    """A whole pipeline: its tables, and a table for each node and model, so that a place in it is worth to be named."""
    plain = [f"{_key(key)} = {text_of(value)}" for key, value in pipeline.items() if not isinstance(value, Mapping)]
    tables = [_table(_key(key), value) for key, value in pipeline.items() if isinstance(value, Mapping)]
    return "\n".join([*plain, *tables]) + "\n"


def _table(name: str, table: Mapping[str, Any]) -> str:
    inner = name in ("models", "nodes")
    lines = [f"[{name}]"]
    lines += [f"{_key(key)} = {text_of(value)}" for key, value in table.items() if not (inner and isinstance(value, Mapping))]
    lines += [_table(f"{name}.{_key(key)}", value) for key, value in table.items() if inner and isinstance(value, Mapping)]
    return "\n".join(lines)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of a pipeline is a text, not {type(key).__name__}: {key!r}")
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else text_of(key)


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08X}"
