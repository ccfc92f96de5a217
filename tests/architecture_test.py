"""The tree's own rules: who may include whom, who may write files, and how long a file may be (docs/architecture.md)."""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ("base", "data", "columnar", "engine", "comm", "dsl", "text", "models", "nodes", "cli")
SUFFIXES = (".h", ".cpp", ".inc", ".cu", ".cuh")
LONGEST = 500  # lines of a file
WIDEST = 130  # of a line of a comment; clang-format cuts code alone
PROSE = re.compile(r"\s*//+ (?!\s|clang-format|NOLINT)(?!.*\S {3,}\S)")  # not an example, nor a line of a table

# An include that begins with one of these is forbidden in the files of that module.
TORCH = ("torch/", "ATen/", "c10/")
ARROW = ("arrow/", "parquet/")  # of what columnar/ is made, which is loaded when a file needs it
FORBIDDEN = {
    "base": ("columnar/", "comm/", "data/", "engine/", "dsl/", "text/", "models/", "nodes/", "cli/") + TORCH,
    "data": ("columnar/", "comm/", "engine/", "dsl/", "text/", "models/", "nodes/", "cli/") + TORCH,
    "engine": ("columnar/", "comm/", "data/", "dsl/", "text/", "nodes/", "models/", "cli/", "toml++/") + TORCH,
    "dsl": ("columnar/", "comm/", "data/", "text/", "nodes/", "models/", "cli/") + TORCH,
    "text": ("columnar/", "comm/", "data/", "engine/", "dsl/", "models/", "nodes/", "cli/") + TORCH,
    "models": ("columnar/", "comm/", "data/", "engine/", "text/", "nodes/", "dsl/", "cli/"),
    "columnar": ("comm/", "engine/", "dsl/", "text/", "models/", "nodes/", "cli/") + TORCH,
    "nodes": ("columnar/", "comm/", "dsl/", "cli/"),
    "comm": ("columnar/", "data/", "dsl/", "text/", "models/", "nodes/", "cli/"),
    "cli": ("columnar/",),
}
TABLE = re.compile(r"^\| folder of `(\w+)/` \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)


def folders_of(page):
    """By module its folders, each of which includes only those before it; a folder in a folder belongs to it unless it is named.
    "" is the module's own folder, where it may hold files."""
    found = {}
    for module, rows in TABLE.findall(page.read_text(encoding="utf-8")):
        first_cells = " ".join(row.split("|")[1] for row in rows.splitlines())
        found[module] = tuple("" if name == module else name for name in re.findall("`([^`]+)/`", first_cells))
    return found


FOLDERS = folders_of(ROOT / "docs" / "architecture.md")
# Parts of models/ that sanitizers see: they read what others wrote, or hand out memory.
TORCH_FREE = ("models/config/", "models/folder/safetensors_header", "models/sample/block_pool", "models/sample/prefix_",
              "models/sample/sample.", "models/sample/scheduler")
# Whatever changes files goes through base/files/file.h and base/files/folder.h, so that it is whole after a crash and can be
# tested to be.
WRITES = re.compile(
    r"\b(?:std::o?fstream\b|(?:mkstemp|mkdtemp|mkostemp|tmpfile|freopen)\s*\("
    r"|(?:fs|filesystem)::(?:rename|remove|remove_all|create_director(?:y|ies)|resize_file|copy_file|copy"
    r"|create_(?:directory_)?symlink)\s*\()"
    r"|(?<![\w.>:])(?:std)?::rename(?:at2?)?\s*\(|(?<!\w)::(?:creat|unlink|rmdir|mkdir|symlink|link|f?truncate)\s*\("
    r'|\bfopen\s*\([^;]*"[wa+][^"]*"|\bfopen\s*\([^;]*"r[^"]*\+'
    r'|(?<!\w)::open(?:at)?\s*\((?!"/dev/)[^;]*\bO_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)\b')
# Questions about what lies at a path go through base/files/path_kind.h: these throw what no user can read, or take what is
# unreadable for missing.
ASKS = re.compile(
    r"\bstd::ifstream\b|(?:fs|filesystem)::(?:exists|is_directory|is_regular_file|is_symlink|is_empty|file_size|status"
    r"|symlink_status|canonical|last_write_time|equivalent|absolute|current_path|(?:recursive_)?directory_iterator"
    r"|directory_entry)\b")
COMMENT = re.compile(r"//[^\n]*")
# Those that may, and why.
WRITERS = {
    "cli/run_folder/run_lock.cpp": "a lock and who holds it: both end with the process, and mean nothing after a power cut",
    "comm/parcels/shared_memory.cpp": "memory without a name, of which there is no file",
    "data/scratch_file.cpp": "a temporary file without a name, which ends with the process",
}
# Those that may ask, and why.
ASKERS = {
    "base/process/machine.cpp": "files of the system below a folder that tests lay out",
    "engine/memory/memory_meter.cpp": "a file of the system",
    "cli/run/nvtx_ranges.cpp": "files of the system below a folder that tests lay out",
    "nodes/scorers/code/sandbox.cpp": "links and folders of the system, of which those that are not there are left out",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')


def source_files(root):
    for module in MODULES:
        for path in sorted((root / module).rglob("*")):
            if path.suffix in SUFFIXES:
                yield module, path


def included(text):
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def writes(text):
    """Line and name of each call that changes files on its own."""
    text = COMMENT.sub("", text)
    for match in WRITES.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(0).split("(")[0].strip()


def asks(text):
    """Line and name of each question about a path that goes past base/files/path_kind.h."""
    text = COMMENT.sub("", text)
    for match in ASKS.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(0)


def folder_of(name):
    """The folder of FOLDERS that this file is in, of its module; nothing for one that is not there."""
    module, *folders = pathlib.PurePosixPath(name).parent.parts
    for depth in range(len(folders), -1, -1):
        if (folder := "/".join(folders[:depth])) in FOLDERS[module] and (folder or not folders):
            return folder
    return None


def wrong_arrow(name, header):
    """What is wrong with a file that includes this header of its own module; nothing if it may."""
    module = name.split("/")[0]
    folder, target = folder_of(name), folder_of(header)
    if folder is None or target is None:
        return f"{module}/ has the folders {', '.join(one for one in FOLDERS[module] if one)}"
    if FOLDERS[module].index(target) > FOLDERS[module].index(folder):
        return f"{f'{module}/{folder}'.rstrip('/')} must not include {f'{module}/{target}'.rstrip('/')}"
    return None


def violations(root):
    """One line for each broken rule, `file:line: what`."""
    found = []
    for module, path in source_files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > LONGEST:
            found.append(f"{name}:{lines}: longer than {LONGEST} lines")
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > WIDEST and PROSE.match(line):
                found.append(f"{name}:{number}: a comment of more than {WIDEST} characters")
        for number, header in included(text):
            place = f"{name}:{number}"
            if header.startswith(FORBIDDEN[module]):
                found.append(f"{place}: {module} must not include {header}")
            if module in FOLDERS and header.startswith(f"{module}/") and (wrong := wrong_arrow(name, header)):
                found.append(f"{place}: {wrong}")
            if header.startswith(TORCH) and name.startswith(TORCH_FREE):
                found.append(f"{place}: this file stays free of torch, so that it can be fuzzed or sanitized without")
            if header.startswith("torch/torch.h"):
                found.append(f"{place}: torch/torch.h takes 25 s to compile; include the operators that are used")
            if header.startswith(ARROW) and module != "columnar":
                found.append(f"{place}: only columnar/ includes Apache Arrow, so that everything else is built and runs without")
            if header.startswith("spdlog/") and name != "base/log.cpp":
                found.append(f"{place}: only base/log.cpp includes spdlog, its fmt and torch's do not mix")
        if module != "base" and name not in WRITERS:
            for number, call in writes(text):
                found.append(f"{name}:{number}: {call} writes past base/files/file.h and base/files/folder.h; a power cut may "
                             "leave a part, and no test can let it fail")
        if module != "base" and name not in ASKERS:
            for number, call in asks(text):
                found.append(f"{name}:{number}: {call} asks past base/files/path_kind.h: what may not be read "
                             "would be a bug, or missing")
        if "cuda_runtime" in text and not name.startswith("models/cuda/"):
            found.append(f"{name}: cuda_runtime belongs into models/cuda")
    return found


def misnamed(root):
    """Tests whose names are not in a namespace of their file: those of a folder are compiled together, where two of one name
    clash."""
    tests = sorted((root / "tests").rglob("*_test.cpp"))
    return [path.relative_to(root).as_posix() for path in tests
            if not re.search(rf"^namespace sluice(::\w+)*::{path.stem} {{$", path.read_text(encoding="utf-8"), re.MULTILINE)]


class Architecture(unittest.TestCase):
    def test_names_of_tests_are_their_own(self):
        self.assertEqual(misnamed(ROOT), [])

    def test_the_tree_breaks_no_rule(self):
        self.assertGreater(sum(1 for _ in source_files(ROOT)), 100, "the sources were not found")
        self.assertEqual(violations(ROOT), [])


class TheTestItself(unittest.TestCase):
    def violations_of(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return violations(root)

    def test_finds_every_forbidden_arrow(self):
        for module, headers in FORBIDDEN.items():
            for header in headers:
                with self.subTest(module=module, header=header):
                    found = self.violations_of({f"{module}/a.cpp": f'// a file\n#include "{header}x.h"\n'})
                    self.assertEqual(found, [f"{module}/a.cpp:2: {module} must not include {header}x.h"])

    def test_finds_arrows_against_the_order_of_folders(self):
        for name, header, fault in (
            ("engine/plan/a.cpp", "engine/check/a.h", "engine/plan must not include engine/check"),
            ("engine/check/a.cpp", "engine/plan/a.h", None), ("engine/run/a.cpp", "engine/run/a.h", None),
            ("engine/run/a.cpp", "engine/b.h", "engine/ has the folders"),
            ("models/layers/a.cpp", "models/adapters/a.h", "models/layers must not include models/adapters"),
            ("models/layers/feed_forward/a.cpp", "models/portable/a.h", "models/layers must not include models/portable"),
            ("models/layers/a.cpp", "models/layers/feed_forward/a.h", None),
            ("models/sample/a.cpp", "models/layers/feed_forward/a.h", None),
            ("models/new/a.cpp", "models/config/a.h", "models/ has the folders"),
            ("nodes/objectives/preference/a.cpp", "nodes/objectives/a.h",
             "nodes/objectives/preference must not include nodes/objectives"),
            ("nodes/objectives/a.cpp", "nodes/objectives/preference/a.h", None),
            ("comm/a.cpp", "comm/parcels/a.h", "comm must not include comm/parcels"), ("comm/parcels/a.cpp", "comm/a.h", None),
            ("nodes/train/a.cpp", "nodes/presets.h", "nodes/train must not include nodes"),
            ("nodes/builtin.cpp", "nodes/train/a.h", None)):
            with self.subTest(name=name, header=header):
                found = self.violations_of({name: f'#include "{header}"\n'})
                self.assertEqual(len(found), 0 if fault is None else 1, found)
                self.assertTrue(fault is None or found[0].startswith(f"{name}:1: {fault}"), found)

    def test_reads_a_table_of_each_module_that_has_folders(self):
        self.assertEqual(set(FOLDERS), {module for module in MODULES if any(path.is_dir() for path in (ROOT / module).iterdir())})
        self.assertEqual(FOLDERS["comm"], ("", "parcels", "weights"))
        self.assertIn("scorers/http", FOLDERS["nodes"])

    def test_knows_no_folder_that_is_none(self):
        for module, folders in FOLDERS.items():
            for folder in folders:
                self.assertTrue(any((ROOT / module / folder).glob("*.cpp")), f"{module}/{folder}")

    def test_finds_headers_that_only_one_place_may_include(self):
        for name, line in (("nodes/a.cpp", "#include <torch/torch.h>"), ("models/config/a.cpp", "#include <ATen/ATen.h>"),
                           ("cli/a.cpp", "# include <spdlog/spdlog.h>"), ("models/a.h", "#include <cuda_runtime.h>"),
                           ("data/a.cpp", "#include <arrow/api.h>")):
            with self.subTest(line=line):
                self.assertEqual(len(self.violations_of({name: line + "\n"})), 1)

    def test_finds_writing_that_goes_past_base(self):
        for line in ("std::ofstream out(path);", "std::fstream both(path);", 'FILE* file = std::fopen(path, "wb");',
                     'fopen(path, "r+");', "fs::remove_all(folder, error);", "std::filesystem::create_directories(folder);",
                     "fs::rename(a, b);", "fs::copy_file(a, b);", "::rename(a, b);", "std::rename(a, b);", "::unlink(name);",
                     "::open(path, O_CREAT | O_WRONLY, 0644);", "::open(path,\n  O_APPEND |\n  O_WRONLY);",
                     "::mkdir(path, 0777);", "fs::resize_file(path, 3);", "mkstemp(name);"):
            for module in ("data", "engine", "dsl", "text", "models", "nodes", "cli"):
                with self.subTest(line=line, module=module):
                    self.assertEqual(len(self.violations_of({f"{module}/a.cpp": "\n" + line})), 1)
            self.assertEqual(self.violations_of({"base/a.cpp": line}), [])
        for line in ('fopen(path, "rb");', "::open(path, O_RDONLY | O_CLOEXEC);", '::open("/dev/null", O_RDWR);',
                     "files.rename(a, b);", "disk().remove_file(a);", "// fs::remove(a)", "#include <fstream>",
                     "blocks.unlink(b);", "void Pool::unlink(int block) {}", "values.erase(std::remove(a, b, c));",
                     "fs::remove_filename;"):
            with self.subTest(line=line):
                self.assertEqual(self.violations_of({"engine/a.cpp": line}), [])

    def test_finds_questions_that_go_past_base(self):
        for line in ("std::ifstream in(path);", "if (fs::exists(a)) {}", "std::filesystem::is_directory(a, error);",
                     "fs::directory_iterator entry(a), end;", "fs::absolute(a);", "fs::file_size(a);"):
            with self.subTest(line=line):
                self.assertEqual(len(self.violations_of({"cli/a.cpp": line})), 1)
                self.assertEqual(self.violations_of({"base/a.cpp": line}), [])
        for line in ("is_there(a);", "fs::path a;", "fs::weakly_canonical(a, error);", "fs::space(a, error);",
                     "// fs::exists(a)"):
            with self.subTest(line=line):
                self.assertEqual(self.violations_of({"engine/a.cpp": line}), [])

    def test_knows_no_asker_that_is_none(self):
        for name, reason in ASKERS.items():
            self.assertTrue(reason)
            self.assertTrue(list(asks((ROOT / name).read_text(encoding="utf-8"))), name)

    def test_knows_no_writer_that_is_none(self):
        for name, reason in WRITERS.items():
            self.assertTrue(reason)
            self.assertTrue(list(writes((ROOT / name).read_text(encoding="utf-8"))), name)

    def test_finds_a_test_whose_names_are_not_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests" / "nodes").mkdir(parents=True)
            for name, namespace in {"gae": "sluice::nodes::gae_test", "kl": "sluice::nodes",
                                    "ppo": "sluice::nodes::gae_test"}.items():
                (root / "tests" / "nodes" / f"{name}_test.cpp").write_text(f"namespace {namespace} {{\n", encoding="utf-8")
            self.assertEqual(misnamed(root), ["tests/nodes/kl_test.cpp", "tests/nodes/ppo_test.cpp"])

    def test_finds_a_long_file(self):
        self.assertEqual(self.violations_of({"engine/a.h": "\n" * 501}), ["engine/a.h:501: longer than 500 lines"])

    def test_finds_a_wide_comment(self):
        wide = "x" * 130
        self.assertEqual(self.violations_of({"engine/a.h": f"/// {wide}\n///   {wide}\nint x;  // {wide}\n// a   {wide}\n"}),
                         ["engine/a.h:1: a comment of more than 130 characters"])

    def test_allows_what_is_allowed(self):
        self.assertEqual(self.violations_of(
            {"base/log.cpp": "#include <spdlog/spdlog.h>\n",
             "columnar/a.cpp": "#include <arrow/api.h>\n#include \"data/columnar_file.h\"\n",
             "nodes/a.cpp": '#include "engine/contract/node.h"\n#include "models/config/config.h"\n'
                            '#include <ATen/core/Tensor.h>\n',
             "models/cuda/a.cu": "#include <cuda_runtime.h>\n",
             "engine/a.h": "\n" * 500}), [])


if __name__ == "__main__":
    unittest.main()
