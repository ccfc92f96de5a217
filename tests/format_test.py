"""The tree's C++ is formatted as .clang-format says, by the version that Debian 12 has. clang-format -i FILE mends it."""

import os
import pathlib
import shutil
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("base", "bench", "cli", "columnar", "comm", "data", "dsl", "engine", "examples", "models", "nodes", "tests", "text")
SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
MAJOR = " 14."


def faults_of(files):
    done = subprocess.run(["clang-format", "--dry-run", *files], capture_output=True, text=True, check=True, cwd=ROOT)
    return [line for line in done.stderr.splitlines() if "-Wclang-format-violations" in line]


class Format(unittest.TestCase):
    def setUp(self):
        if shutil.which("clang-format") is None:
            if os.environ.get("CI") == "true":
                self.fail("clang-format is missing: apt-get install clang-format")
            self.skipTest("clang-format is not installed")
        version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
        if MAJOR not in version:
            self.skipTest(f"another clang-format formats otherwise: {version.strip()}")

    def test_every_file_is_formatted(self):
        files = [str(path.relative_to(ROOT)) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]
        self.assertGreater(len(files), 500)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            faults = [fault for part in pool.map(faults_of, (files[i::16] for i in range(16))) for fault in part]
        self.assertEqual(faults, [])

    def test_what_is_not_formatted_is_found(self):
        done = subprocess.run(["clang-format", "--dry-run", "--assume-filename=a.cpp"], input="int  x;\n", capture_output=True, text=True, cwd=ROOT)
        self.assertIn("-Wclang-format-violations", done.stderr)


if __name__ == "__main__":
    unittest.main()
