"""Where the programs are and what they need around them, in a checkout that is built or in a folder that bench/gpu/pack filled:
both have the same layout. Standard library only, as everything here but what a case computes with torch."""

import importlib.util
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"
PROGRAM = BUILD / "cli/rlhf-run"
PLUGIN = BUILD / "tests/plugins/libsluice_fake_device.so"
TESTS = {"models": BUILD / "tests/sluice_models_test", "devices": BUILD / "tests/sluice_devices_test"}
BENCHES = BUILD / "bench/programs"
PIPELINES = ROOT / "pipelines"
TORCH_VERSION = re.search(r"SLUICE_TORCH_VERSION ([\d.]+)", (ROOT / "cmake/FindTorch.cmake").read_text())[1]

sys.path.append(str(ROOT / "bench"))  # harness/


def torch_folder():
    """The torch package of this Python, without importing it; SystemExit says what is wrong with it."""
    found = importlib.util.find_spec("torch")
    folders = ([pathlib.Path(place) for place in (found.submodule_search_locations if found else [])] +
               [ROOT / ".deps/python/torch"])
    for folder in folders:
        version = folder / "version.py"
        if version.exists() and f"'{TORCH_VERSION}" in version.read_text():
            return folder
    what, help = (f"this Python has no torch {TORCH_VERSION}, which the programs were built with",
                  f"python3 -m pip install torch=={TORCH_VERSION}")
    sys.exit(f"error: {what}\n       {help}")


def environment():
    """For our programs: LibTorch and what lies beside it are found in the wheels."""
    torch = torch_folder()
    libraries = [torch / "lib", *sorted(torch.parent.glob("nvidia/*/lib"))]
    found = ":".join(str(folder) for folder in libraries)
    return (os.environ |
            {"LD_LIBRARY_PATH": ":".join(filter(None, [found, os.environ.get("LD_LIBRARY_PATH")])), "OMP_WAIT_POLICY": "PASSIVE"})


class Device:
    """What everything runs on: "cuda:0", or "fake:0", which stands for one in the tests."""

    def __init__(self, name, peers=True):
        self.name, self.peers = name, peers
        self.is_gpu = name.startswith("cuda:")
        self.plugin = [PLUGIN] if name.startswith("fake:") else []

    def for_program(self):
        """Words for rlhf-run."""
        return [word for plugin in self.plugin for word in ("--plugin", plugin)]

    def for_bench(self):
        """The last words for a program of bench/."""
        return [self.name, *self.plugin]
