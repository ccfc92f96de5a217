"""Values of Python as the package `sluice` writes them for a pipeline. No program runs."""

import importlib.util
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from sluice import _pipeline, _toml  # noqa: E402


class Float64(float):
    """As that of NumPy: a float that shows itself as no number."""

    def __repr__(self):
        return f"np.float64({float(self)})"


class Values(unittest.TestCase):
    def test_a_float_that_shows_itself_otherwise_is_a_number(self):
        self.assertEqual(_toml.text_of(Float64(1e-4)), "0.0001")
        self.assertEqual(_toml.document_of({"models": {"actor": {"rate": [Float64(0.5)]}}}),
                         "[models]\n[models.actor]\nrate = [0.5]\n")
        self.assertIn("0.25", _pipeline.words_of({"budget.x": Float64(0.25)})[1])

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "without NumPy")
    def test_values_of_numpy_are_those_of_python(self):
        import numpy
        for value, text in ((numpy.float64(1e-4), "0.0001"), (numpy.float32(0.5), "0.5"), (numpy.longdouble(2), "2.0"),
                            (numpy.int64(3), "3"), (numpy.uint8(4), "4"), (numpy.bool_(False), "false"),
                            (numpy.str_('a "b"'), '"a \\"b\\""'), (numpy.float64("nan"), "nan"),
                            (numpy.array([0.9, 0.5]), "[0.9, 0.5]"), ([numpy.int64(1), True], "[1, true]"),
                            ({"x": numpy.bool_(True)}, "{ x = true }")):
            self.assertEqual(_toml.text_of(value), text)

    def test_a_key_that_is_no_text_names_its_type(self):
        with self.assertRaisesRegex(TypeError, "a key of a pipeline is a text, not int: 1"):
            _toml.document_of({"nodes": {1: {}}})

    def test_they_are_read_back_as_they_were(self):
        import tomllib

        pipeline = {"extends": 'a "b"\\c\n\t\x7f é', "plugins": ["x.so"],
                    "pipeline": {"name": "p", "seed": -3, "stop_when": {"metric": "a/b", "at_least": 1e-9}},
                    "models": {"a b": {"lora": {"rank": 4}, "freeze": ["x", "y"]}},
                    "nodes": {"score": False, "n": {"type": "t", "inputs": [], "x": 1e300, "d": {}}}}
        self.assertEqual(tomllib.loads(_toml.document_of(pipeline)), pipeline)


if __name__ == "__main__":
    unittest.main()
