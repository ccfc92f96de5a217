"""The keys of a run's pipeline, as trackers are told them."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import re
from typing import Any

try:
    import tomllib
except ImportError:  # Python 3.10, where the wheel brings tomli; an environment of a tracker beside a checkout may lack it
    tomllib = importlib.import_module("tomli") if importlib.util.find_spec("tomli") else None


def config_of(run: pathlib.Path) -> dict[str, Any]:
    """Every key, as "nodes.generate.max_new_tokens". Empty where the file is damaged or gone, or no package reads TOML: the
    metrics can be told all the same."""
    if tomllib is None:
        return {}
    try:
        return _flat(tomllib.loads((run / "pipeline.toml").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _flat(table: dict[str, Any], above: str = "") -> dict[str, Any]:
    """{"nodes": {"a": {"b": 1}}} as {"nodes.a.b": 1}."""
    keys: dict[str, Any] = {}
    for name, value in table.items():
        keys |= _flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": without_passwords(value)}
    return keys


def without_passwords(value: Any) -> Any:
    """With "http://***@host" for "http://user:secret@host", wherever it stands in the value."""
    if isinstance(value, str):
        return re.sub(r"(:/{1,3})[^/?#\s]*@", r"\1***@", value)
    if isinstance(value, list):
        return [without_passwords(element) for element in value]
    if isinstance(value, dict):
        return {name: without_passwords(element) for name, element in value.items()}
    return value
