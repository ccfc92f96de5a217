"""clang-tidy finds no mistake in the parts that have threads or write files (.clang-tidy has the checks)."""

import concurrent.futures
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("base", "engine/checkpoint", "engine/schedule")
BUILD = "build/tidy"
TOGETHER = 8  # files, whose headers are parsed once; their names differ, see cmake/Together.cmake


def findings(path):
    """What clang-tidy says of a file and of those of FOLDERS that it includes; they need no library outside the system's include
    path."""
    ours = f"^{re.escape(str(ROOT))}/({'|'.join([*FOLDERS, BUILD])})/.*\\.cpp$"
    command = ["clang-tidy", "--quiet", f"--header-filter={ours}", str(path), "--", "-std=c++20", f"-I{ROOT}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


class Tidy(unittest.TestCase):
    def setUp(self):
        self.build = ROOT / BUILD
        self.build.mkdir(parents=True, exist_ok=True)

    def together(self, name, files):
        """A source that includes these."""
        source = self.build / f"{name.replace('/', '-')}.cpp"
        source.write_text("".join(f'#include "{path}"\n' for path in files), encoding="utf-8")
        return source

    def test_finds_a_mistake(self):
        faulty = self.build / "faulty.cpp"
        faulty.write_text("#include <string>\n#include <utility>\n"
                          "std::string two(std::string a) { std::string b = std::move(a); return a + b; }\n", encoding="utf-8")
        self.assertIn("bugprone-use-after-move", findings(self.together("with-faulty", [faulty])))

    def test_there_is_none(self):
        sources = []
        for folder in FOLDERS:
            files = sorted((ROOT / folder).rglob("*.cpp"))
            self.assertGreater(len(files), 5, folder)
            sources += [self.together(f"{folder}-{i}", files[i:i + TOGETHER]) for i in range(0, len(files), TOGETHER)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual("".join(pool.map(findings, sources)), "")


if __name__ == "__main__":
    unittest.main()
