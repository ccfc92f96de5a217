"""What bench/gpu/pack puts into a folder is all that bench/gpu/run needs: it passes where there is nothing else, on the device
that stands for a GPU.

Where there is nothing else: a root of its own, in a namespace, that has the folder, Python, the wheels of LibTorch and the
libraries of GCC and of the C library. Neither the checkout nor any other library of this machine is there."""

import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TORCH, BUILD = pathlib.Path(os.environ["SLUICE_TORCH"]), pathlib.Path(os.environ["SLUICE_BUILD"])
PROGRAM = BUILD / "cli/rlhf-run"
OWN_ROOT = ("unshare", "--user", "--map-root-user", "--mount")
PYTHON = pathlib.Path(sys.executable).resolve()
OF_EVERY_SYSTEM = re.compile(r"/(ld-linux[^/]*|lib(c|m|dl|pthread|rt|util|resolv|gcc_s|stdc\+\+)\.so[^/]*)$")
CASES = 14  # of the part `smoke`


def pack(*words):
    return subprocess.run([sys.executable, ROOT / "bench/gpu/pack", "--no-build", *words], capture_output=True, text=True)


def libraries_of(file):
    listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(/\S+)", listed))


def seen_from_inside(folder):
    """{path inside: path here}"""
    of_system = {path for path in libraries_of(PROGRAM) if OF_EVERY_SYSTEM.search(path)} | libraries_of(PYTHON)
    same = [*of_system, PYTHON, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")), "/proc", "/dev"]
    return ({str(path): str(path) for path in same} |
            {"/wheels/torch": TORCH, "/wheels/nvidia": TORCH.parent / "nvidia", "/pack": folder})


def run_inside(folder, root, *words):
    """Runs Python there, with an environment of its own."""
    lines = ["set -e"]
    for inside, here in seen_from_inside(folder).items():
        place = f"{root}{inside}"
        lines.append(f"mkdir -p '{place}'" if os.path.isdir(here) else f"mkdir -p '{os.path.dirname(place)}'; touch '{place}'")
        lines.append(f"mount --rbind '{here}' '{place}'")
    variables = "PATH=/usr/sbin:/usr/bin HOME=/tmp PYTHONPATH=/wheels PYTHONDONTWRITEBYTECODE=1"
    lines.append(f"mkdir -p '{root}/tmp'; exec env -i {variables} chroot '{root}' '{PYTHON}' {' '.join(words)}")
    return subprocess.run([*OWN_ROOT, "sh", "-c", "\n".join(lines)], capture_output=True, text=True)


def may_have_roots():
    return subprocess.run([*OWN_ROOT, "true"], capture_output=True).returncode == 0


@unittest.skipUnless((BUILD / "libsluice_cuda.so").exists(), "our CUDA kernels are not built: there is no nvcc")
class GpuPack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-pack-")
        self.addCleanup(folder.cleanup)
        self.folder, self.root = pathlib.Path(folder.name) / "pack", pathlib.Path(folder.name) / "root"

    @unittest.skipUnless(may_have_roots(), "this machine gives no namespaces")
    def test_smoke_passes_where_there_is_nothing_else(self):
        packed = pack(self.folder)
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertEqual([path for path in seen_from_inside(self.folder) if path.startswith(str(ROOT))], [])
        done = run_inside(self.folder, self.root, "/pack/bench/gpu/run", "--device", "fake:0", "smoke")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        self.assertEqual(len(answers), CASES)
        self.assertEqual([answer["case"] for answer in answers if not answer["ok"]], ["peaks"])
        self.assertIn(f"none of {CASES} failed on fake:0", done.stdout)

    @unittest.skipUnless(may_have_roots(), "this machine gives no namespaces")
    def test_what_lacks_a_library_fails(self):
        pack(self.folder)
        (self.folder / "build/release/libtbb.so.12").unlink()
        done = run_inside(self.folder, self.root, "/pack/bench/gpu/run", "--device", "fake:0", "smoke")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("libtbb.so.12", done.stdout)

    def test_one_that_is_too_large_is_refused(self):
        done = pack("--most", "1", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 MB at most", done.stderr)

    def test_a_folder_that_holds_something_else_is_left_alone(self):
        self.folder.mkdir()
        (self.folder / "mine").touch()
        done = pack(self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("holds something else", done.stderr)
        self.assertTrue((self.folder / "mine").exists())


if __name__ == "__main__":
    unittest.main()
