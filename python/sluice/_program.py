"""Where the program is, and the command `rlhf-run` of an installed wheel."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

_HERE = pathlib.Path(__file__).resolve().parent


def _candidates() -> list[pathlib.Path]:
    return [_HERE / "bin/rlhf-run",  # a wheel: the package is the whole tree
            *(above / "bin/rlhf-run" for above in _HERE.parents[3:4]),  # PREFIX/share/sluice/python/sluice
            *(above / "build/release/cli/rlhf-run" for above in _HERE.parents[1:2])]  # a checkout


def program() -> pathlib.Path:
    """The program: what SLUICE_PROGRAM names, the one that this package came with, or the first in PATH."""
    named = os.environ.get("SLUICE_PROGRAM")
    if named:
        return pathlib.Path(named)
    for candidate in _candidates():
        if candidate.is_file():
            return candidate
    found = shutil.which("rlhf-run")
    if found is None:
        raise FileNotFoundError("there is no rlhf-run beside this package or in PATH; SLUICE_PROGRAM may name it")
    return pathlib.Path(found)


def startable_program() -> pathlib.Path:
    """Raises FileNotFoundError where it is that of a wheel, and torch does not lie beside that."""
    found = program()
    torch = _HERE.parent / "torch/lib/libtorch_cpu.so"
    if found.parent.parent == _HERE and not torch.exists():
        raise FileNotFoundError(f"torch is not installed beside sluice: there is no {torch}\n"
                                "      = help: install both with one pip into one environment: pip install WHEEL")
    return found


def cmake_prefix() -> str:
    """What CMAKE_PREFIX_PATH needs, so that find_package(sluice) finds headers and libraries to build plugins with."""
    prefix = program().resolve().parent.parent
    if not (prefix / "lib/cmake/sluice").is_dir():
        raise FileNotFoundError(f"{prefix} is no install tree: it has no lib/cmake/sluice; install the wheel, or "
                                "cmake --install the build")
    return str(prefix)


def environment() -> dict[str, str]:
    """Of the program: helpers in Python run with this interpreter, which has what is installed beside this package."""
    return {"SLUICE_PYTHON": sys.executable, **os.environ}


def main() -> None:
    """The command rlhf-run of a wheel: becomes the program."""
    try:
        wanted = startable_program()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    os.execve(wanted, ["rlhf-run", *sys.argv[1:]], environment())
