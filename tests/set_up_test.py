"""Set-up on machines that are made up: a checkout with the real scripts, and stand-ins for the commands that load and build.

What is asked is what set-up decides and says; that the packages and the build are right is what a fresh clone shows."""

import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH = "2.11.0"
STAND_INS = {
    "dpkg-query": 'while [[ $1 == -* ]]; do shift 2; done\n'
                  'for p in "$@"; do [[ $p == "${MISSING:-}" ]] || echo "$p install ok installed"; done',
    "sudo": "exit 1",
    "apt-get": "exit 1",
    # pip makes the folder that a wheel would; -c asks for a torch of this machine's Python.
    "python3": 'case "$*" in (-c*) echo "${FOUND:-}" ;; (*--version) ;; (*--target*) [[ -z ${NO_NETWORK:-} ]] || exit 1\n'
               '  all=$*; while [[ $1 != --target ]]; do shift; done\n'
               '  if [[ $all == *pyarrow.txt* ]]; then\n'
               '    mkdir -p "$2"/pyarrow/{include,tests} "$2/pyarrow-1.dist-info"\n'
               '    touch "$2"/pyarrow/lib{arrow,parquet,arrow_flight}.so.2600\n'
               '    exit\n'
               '  fi\n'
               '  mkdir -p "$2/torch"; echo "__version__ = \'' + TORCH + '+cpu\'" >"$2/torch/version.py" ;; esac',
    "cmake": 'touch build/release/build.ninja',
    "nproc": "echo 4",
    "ccache": 'echo "files_in_cache ${CACHED:-0}"',
    "ninja": '[[ -z ${BROKEN:-} ]] || { echo "gae.cpp:1: error: no such thing"; exit 1; }\n'
             'if [[ -n ${SLOW:-} ]]; then\n'
             '  echo "[0/2] Re-checking globbed directories..."; echo "[150/300] Building CXX object gae.cpp.o"\n'
             '  until [[ -e $SLOW ]]; do sleep 0.1; done\n'
             'fi\n'
             'mkdir -p "$2/cli"; printf \'#!/bin/sh\\necho ran "$@"\\n\' >"$2/cli/rlhf-run"; chmod +x "$2/cli/rlhf-run"',
}


class SetUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.root = self.checkout("a checkout")
        self.commands = self.folder / "bin"
        self.commands.mkdir()
        for name, body in STAND_INS.items():
            (self.commands / name).write_text(f"#!/bin/bash\n{body}\n")
            (self.commands / name).chmod(0o755)

    def checkout(self, name):
        root = self.folder / name
        (root / "cmake").mkdir(parents=True)
        shutil.copy(ROOT / "rlhf-run", root)
        for name in ("set-up.sh", "pyarrow.txt"):
            shutil.copy(ROOT / "cmake" / name, root / "cmake")
        return root

    def start(self, root, *arguments, **machine):
        inherited = {name: text for name, text in os.environ.items() if name not in ("Torch_ROOT", "SLUICE_DEPS")}
        environment = inherited | {"PATH": f"{self.commands}:{os.environ['PATH']}"} | machine
        return subprocess.Popen([root / "rlhf-run", *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def run_in(self, root, *arguments, **machine):
        process = self.start(root, *arguments, **machine)
        said, told = process.communicate(timeout=60)
        return process.returncode, said, told

    def run_it(self, *arguments, **machine):
        return self.run_in(self.root, *arguments, **machine)

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

    def test_a_long_build_says_how_long_it_will_take_and_how_far_it_is(self):
        for cached, words in (("0", "300 steps: about 10 min on 4 cores, nothing is in the compiler cache yet"),
                              ("900", "300 steps: about 38 s on 4 cores, if the compiler cache has them")):
            seen = self.folder / f"seen {cached}"  # the build goes on when what it is about was read
            process, told = self.start(self.root, "--setup", SLOW=str(seen), CACHED=cached), ""
            while "steps, about" not in told and (line := process.stderr.readline()):
                told += line
            seen.touch()
            self.assertEqual(process.wait(timeout=60), 0, told + process.communicate()[1])
            self.assertIn("step 4 of 4: building, " + words, told)
            self.assertRegex(told, r"150 of 300 steps, about \d+ s left")

    def test_two_checkouts_share_what_is_fetched(self):
        shared, other = self.folder / "shared", self.checkout("another")
        status, said, told = self.run_it("--setup", SLUICE_DEPS=str(shared))
        self.assertEqual((status, said), (0, ""), told)
        self.assertIn("fetching LibTorch", told)
        status, _, told = self.run_in(other, "--setup", "--deps", str(shared))
        self.assertEqual(status, 0, told)
        self.assertNotIn("fetching", told)
        for root in (self.root, other):  # found again without being told
            self.assertEqual((root / ".deps").resolve(), shared.resolve())
            self.assertEqual(self.run_in(root, "plan"), (0, "ran plan\n", ""))

    def test_a_torch_that_another_checkout_needs_stays(self):
        shared = self.folder / "shared"
        older = shared / "python/torch/version.py"
        older.parent.mkdir(parents=True)
        older.write_text("__version__ = '2.10.0+cpu'\n")
        status, _, told = self.run_it("--setup", SLUICE_DEPS=str(shared))
        self.assertEqual(status, 0, told)
        self.assertEqual(older.read_text(), "__version__ = '2.10.0+cpu'\n")
        self.assertTrue((shared / f"python-{TORCH}/torch/version.py").exists())
        self.assertEqual(self.run_it("plan"), (0, "ran plan\n", ""))

    def test_a_folder_of_its_own_with_things_in_it_is_not_given_up_in_silence(self):
        self.run_it("--setup")
        status, _, told = self.run_it("--setup", "--deps", str(self.folder / "shared"))
        self.assertEqual(status, 1)
        self.assertIn("error: SLUICE_DEPS names another folder than .deps of this checkout, which is not empty", told)
        self.assertTrue((self.root / ".deps/python").exists())

    def test_who_changes_the_shared_folder_waits_for_who_builds_with_it_and_others_do_not(self):
        shared, other = self.folder / "shared", self.checkout("another")
        self.run_it("--setup", SLUICE_DEPS=str(shared))
        with open(shared / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)  # as a build of a third checkout holds it
            self.assertEqual(self.run_it("plan"), (0, "ran plan\n", ""))
            waiting = self.start(other, "plan", SLUICE_DEPS=str(shared))
            self.assertIn("waiting for another set-up to end", waiting.stderr.readline())
            self.assertFalse((other / "build").exists())
        self.assertEqual(waiting.communicate(timeout=60)[0], "ran plan\n")

    def test_pyarrow_is_fetched_when_it_is_asked_for_and_only_what_is_used_of_it_is_kept(self):
        self.run_it("--setup")
        (self.root / "build/release/build.ninja").write_text("# configured without it")
        self.assertEqual(list((self.root / ".deps").glob("pyarrow*")), [])
        status, _, told = self.run_it("--setup", "--parquet")
        self.assertEqual(status, 0, told)
        self.assertIn("fetching pyarrow", told)
        self.assertIn("configuring", told)
        folder, = (self.root / ".deps").glob("pyarrow*")
        kept = {str(path.relative_to(folder)) for path in folder.rglob("*")}
        self.assertEqual(kept, {"pyarrow", "pyarrow/include", "pyarrow/libarrow.so.2600", "pyarrow/libparquet.so.2600",
                                "pyarrow/pyarrow-1.dist-info"})
        (self.root / "build/release/build.ninja").write_text("build libsluice_columnar.so: sluice_columnar")
        self.assertEqual(self.run_it("--setup", "--parquet"), (0, "", ""))

    def test_pyarrow_that_cannot_be_fetched_is_one_line_with_what_to_do_by_hand(self):
        self.run_it("--setup")
        status, said, told = self.run_it("--setup", "--parquet", NO_NETWORK="1")
        self.assertEqual((status, said), (1, ""), told)
        self.assertIn("error: pyarrow could not be fetched", told)
        self.assertIn("by hand: python3 -m pip install --target .deps/pyarrow-", told)
        self.assertEqual(list((self.root / ".deps").glob("pyarrow*")), [])

    def test_an_unknown_argument_of_setup_is_refused(self):
        status, _, told = self.run_it("--setup", "--dep")
        self.assertEqual(status, 1)
        self.assertIn("error: --setup knows no --dep", told)


class Versions(unittest.TestCase):
    def test_what_names_the_packages_of_torch_names_those_of_set_up(self):
        wheels = re.search(r"torch_wheels=\(([^)]*)\)", (ROOT / "cmake/set-up.sh").read_text()).group(1)
        for name in ("Dockerfile", "docs/install.md"):
            self.assertIn(wheels, (ROOT / name).read_text(), name)

    def test_the_pyarrow_that_users_are_told_of_is_that_of_set_up(self):
        (pinned,) = re.findall(r"(?m)^pyarrow==[\d.]+", (ROOT / "cmake/pyarrow.txt").read_text())
        self.assertEqual(set(re.findall(r"pyarrow==[\d.]+", (ROOT / "docs/install.md").read_text())), {pinned})


if __name__ == "__main__":
    unittest.main()
