"""The lists of mutations name places that the code has: a list that the code has gone away from finds nothing."""

import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ("tests/devices/mutations.py", "tests/models/cuda/kernel_mutations.py")


def mutations_of(path):
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTATIONS


class Mutations(unittest.TestCase):
    def test_each_has_one_place_and_changes_it(self):
        for path in LISTS:
            for name, file, there, instead, *_ in mutations_of(path):
                with self.subTest(name, list=path):
                    self.assertEqual((ROOT / file).read_text().count(there), 1, f"{file}: {there}")
                    self.assertNotEqual(there, instead)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    unittest.main(verbosity=2)
