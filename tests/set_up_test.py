"""Set-up on machines that are made up: a checkout with the real scripts, and stand-ins for the commands that load and build.

What is asked is what set-up decides and says; that the packages and the build are right is what a fresh clone shows."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH = "2.11.0"
STAND_INS = {
    "dpkg-query": 'while [[ $1 == -* ]]; do shift 2; done; for p in "$@"; do [[ $p == "${MISSING:-}" ]] || echo "$p install ok installed"; done',
    "sudo": "exit 1",
    "apt-get": "exit 1",
    # pip makes the folder that a wheel would; -c asks for a torch of this machine's Python.
    "python3": 'case "$*" in (-c*) echo "${FOUND:-}" ;; (*--version) ;; (*--target*) [[ -z ${NO_NETWORK:-} ]] || exit 1\n'
               '  while [[ $1 != --target ]]; do shift; done; mkdir -p "$2/torch"; echo "__version__ = \'' + TORCH + '+cpu\'" >"$2/torch/version.py" ;; esac',
    "cmake": 'touch build/release/build.ninja',
    "ninja": '[[ -z ${BROKEN:-} ]] || { echo "gae.cpp:1: error: no such thing"; exit 1; }\n'
             'mkdir -p "$2/cli"; printf \'#!/bin/sh\\necho ran "$@"\\n\' >"$2/cli/rlhf-run"; chmod +x "$2/cli/rlhf-run"',
}


class SetUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "a checkout"
        self.commands = pathlib.Path(folder.name) / "bin"
        (self.root / "cmake").mkdir(parents=True)
        self.commands.mkdir()
        shutil.copy(ROOT / "rlhf-run", self.root)
        shutil.copy(ROOT / "cmake" / "set-up.sh", self.root / "cmake")
        for name, body in STAND_INS.items():
            (self.commands / name).write_text(f"#!/bin/bash\n{body}\n")
            (self.commands / name).chmod(0o755)

    def run_it(self, *arguments, **machine):
        inherited = {name: text for name, text in os.environ.items() if name != "Torch_ROOT"}
        environment = inherited | {"PATH": f"{self.commands}:{os.environ['PATH']}"} | machine
        done = subprocess.run([self.root / "rlhf-run", *arguments], env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def torch_at(self, name, version):
        folder = self.root.parent / name / "torch"
        folder.mkdir(parents=True)
        (folder / "version.py").write_text(f"__version__ = '{version}+cpu'\n")
        return str(folder)

    def test_a_fresh_machine_fetches_builds_and_runs_and_a_second_call_only_runs(self):
        status, said, told = self.run_it("pipelines/ppo.toml")
        self.assertEqual((status, said), (0, "ran pipelines/ppo.toml\n"), told)
        self.assertIn("fetching LibTorch", told)
        self.assertEqual(self.run_it("plan"), (0, "ran plan\n", ""))

    def test_a_torch_of_the_right_version_is_used_where_it_is(self):
        for machine in ({"Torch_ROOT": self.torch_at("mine", TORCH)}, {"FOUND": self.torch_at("of-python", TORCH)}):
            status, _, told = self.run_it("--setup", **machine)
            self.assertEqual(status, 0, told)
            self.assertNotIn("fetching", told)
            self.assertFalse((self.root / ".deps" / "python").exists())

    def test_a_torch_of_another_version_is_not(self):
        status, _, told = self.run_it("--setup", Torch_ROOT=self.torch_at("old", "2.4.0"), FOUND=self.torch_at("older", "1.13.1"))
        self.assertEqual(status, 0, told)
        self.assertIn("fetching LibTorch", told)

    def test_what_fails_is_one_line_with_what_to_do_by_hand(self):
        for machine, words in (({"NO_NETWORK": "1"}, "LibTorch could not be fetched"), ({"BROKEN": "1"}, "the build failed"),
                               ({"MISSING": "mold"}, "packages could not be installed")):
            with self.subTest(words):
                shutil.rmtree(self.root / ".deps", ignore_errors=True)
                status, said, told = self.run_it("plan", **machine)
                self.assertEqual((status, said), (1, ""), told)
                self.assertIn(f"error: {words}", told)
                self.assertIn("by hand: ", told)

    def test_what_was_interrupted_while_fetching_is_fetched_again(self):
        self.run_it("--setup", NO_NETWORK="1")
        status, _, told = self.run_it("--setup")
        self.assertEqual(status, 0, told)
        self.assertIn("fetching LibTorch", told)


if __name__ == "__main__":
    unittest.main()
