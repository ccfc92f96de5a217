"""The tree's C++ is formatted as .clang-format says, by the version that Debian 12 has. clang-format -i FILE mends it. Its Python
has as many columns, and imports nothing that it does not use."""

import ast
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
COLUMNS = 130
SCRIPTS = ("bench/run", "bench/gpu/run", "bench/gpu/pack")  # Python without the suffix
A_CASE_A_LINE = ("tests/oracles/chat_template_snippets.py",)


def faults_of(files):
    done = subprocess.run(["clang-format", "--dry-run", *files], capture_output=True, text=True, check=True, cwd=ROOT)
    return [line for line in done.stderr.splitlines() if "-Wclang-format-violations" in line]


def unused_imports(text):
    """Line and name of each; not of a package whose part is imported for what it adds, nor of what __all__ or noqa hands on."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__all__" in used}
    lines = text.splitlines()
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom) or "F401" in lines[node.lineno - 1]:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        for name in node.names:
            if (name.asname or name.name) not in used and "." not in name.name:
                yield node.lineno, name.asname or name.name


def python_files():
    """Name and text of each."""
    files = [path for folder in (*FOLDERS, "pipelines", "python") for path in sorted((ROOT / folder).rglob("*.py"))]
    files += [ROOT / name for name in SCRIPTS]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = python_files()

    def test_files_are_found(self):
        self.assertGreater(len(self.files), 100)

    def test_lines_have_so_many_columns_at_most(self):
        self.assertEqual([f"{name}:{number}" for name, text in self.files.items() if name not in A_CASE_A_LINE
                          for number, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS], [])

    def test_all_imports_are_used(self):
        self.assertEqual([f"{name}:{line}: {imported}" for name, text in self.files.items()
                          for line, imported in unused_imports(text)], [])

    def test_an_import_that_is_not_used_is_found(self):
        self.assertEqual(list(unused_imports("import os\nfrom a import b, c as d\nimport x.y\n"
                                             "from e import f  # noqa: F401\nb()\n")), [(1, "os"), (2, "d")])
        self.assertEqual(list(unused_imports("from a import b, c\n__all__ = ['b']\n")), [(1, "c")])


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
        files = [str(path.relative_to(ROOT)) for folder in FOLDERS
                 for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]
        self.assertGreater(len(files), 500)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            faults = [fault for part in pool.map(faults_of, (files[i::16] for i in range(16))) for fault in part]
        self.assertEqual(faults, [])

    def test_what_is_not_formatted_is_found(self):
        done = subprocess.run(["clang-format", "--dry-run", "--assume-filename=a.cpp"], input="int  x;\n", capture_output=True,
                              text=True, cwd=ROOT)
        self.assertIn("-Wclang-format-violations", done.stderr)


if __name__ == "__main__":
    unittest.main()
