"""Lines of a file that the package `sluice` reads while a run writes, cuts and replaces it. No program runs."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from sluice._lines import GrowingFile, _whole_lines, rows_of  # noqa: E402


class GrowingLines(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "metrics.jsonl"
        self.lines = GrowingFile(self.file)

    def write(self, text, mode="a"):
        with self.file.open(mode) as file:
            file.write(text)

    def new(self):
        return [row["iteration"] for row in self.lines.new_rows()]

    def test_each_comes_once_and_when_it_is_whole(self):
        self.assertEqual(self.new(), [])
        self.write('{"iteration": 0}\n{"iteration": 1}\n{"itera')
        self.assertEqual(self.new(), [0, 1])
        self.assertEqual(self.new(), [])
        self.write('tion": 2}\n')
        self.assertEqual(self.new(), [2])

    def test_a_line_that_is_written_in_parts_while_it_is_read_is_not_two(self):
        grows = iter([b'{"iteration": 0}\n', b'{"itera', b'tion": 1}\n'])
        self.assertEqual(list(_whole_lines(grows)), [b'{"iteration": 0}\n'])

    def test_what_a_resume_has_cut_off_comes_when_it_is_written_again(self):
        self.write("".join(f'{{"iteration": {i}}}\n' for i in range(4)))
        self.assertEqual(self.new(), [0, 1, 2, 3])
        os.truncate(self.file, 2 * len('{"iteration": 0}\n'))
        self.assertEqual(self.new(), [])
        self.write('{"iteration": 2, "again": true}\n')
        self.assertEqual(self.new(), [2])

    def test_one_that_was_cut_and_grew_between_two_looks_is_read_from_where_it_differs(self):
        self.write('{"iteration": 0}\n{"iteration": 1}\n{"iteration": 2}\n')
        self.assertEqual(self.new(), [0, 1, 2])
        self.write('{"iteration": 0}\n{"iteration": 1, "again": true}\n{"iteration": 2, "again": true}\n', "w")
        self.assertEqual(self.new(), [1, 2])

    def test_a_file_that_is_gone_is_read_anew_when_it_is_back(self):
        self.write('{"iteration": 0}\n')
        self.assertEqual(self.new(), [0])
        self.file.unlink()
        self.assertEqual(self.new(), [])
        self.write('{"iteration": 0}\n{"iteration": 1}\n')
        self.assertEqual(self.new(), [1])

    def test_a_damaged_line_is_named(self):
        self.write('{"iteration": 0}\n{"iteration": 1}\n')
        self.assertEqual(self.new(), [0, 1])
        self.write('{"iteration\0: 2}\n')
        for read in (self.lines.new_rows, lambda: rows_of(self.file)):
            with self.assertRaisesRegex(ValueError, "metrics.jsonl:3 is damaged: "):
                read()
        self.write("[1]\n", "w")
        with self.assertRaisesRegex(ValueError, "metrics.jsonl:1 is damaged: no JSON object"):
            rows_of(self.file)


if __name__ == "__main__":
    unittest.main()
