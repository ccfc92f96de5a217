"""clang-tidy finds no mistake in the parts that have threads or write files (.clang-tidy has the checks)."""

import concurrent.futures
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("base", "engine/checkpoint", "engine/schedule")


def findings(path):
    """What clang-tidy says of a file; these folders need no library that is not in the system's include path."""
    command = ["clang-tidy", "--quiet", str(path), "--", "-std=c++20", f"-I{ROOT}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


class Tidy(unittest.TestCase):
    def test_finds_a_mistake(self):
        faulty = ROOT / "build" / "tidy_test.cpp"
        faulty.parent.mkdir(exist_ok=True)
        faulty.write_text("#include <string>\n#include <utility>\nstd::string two(std::string a) { std::string b = std::move(a); return a + b; }\n", encoding="utf-8")
        self.assertIn("bugprone-use-after-move", findings(faulty))

    def test_there_is_none(self):
        files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.cpp"))]
        self.assertGreater(len(files), 40)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual("".join(pool.map(findings, files)), "")


if __name__ == "__main__":
    unittest.main()
