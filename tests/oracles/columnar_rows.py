"""Do Parquet, Arrow and Feather files that pyarrow, pandas and zstandard wrote give the rows of the same JSON lines?

    python3 columnar_rows.py PROGRAM

PROGRAM is sluice_rows_lines. Random tables, nested ones among them, are written as JSON lines, plain, gzip and zstd, and as
columnar files in many layouts: sizes of row groups and pages, dictionaries, compressions, files of several parts. All give the
same values in the same order, shuffled, and through a resume in the middle; of a damaged one the error names file and row.
"""

import decimal
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import pandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import zstandard

PROGRAM = sys.argv.pop(1) if __name__ == "__main__" else None
WORDS = ["plain", "text", "ünïcödé", "漢字", "😀", '"quoted"', "back\\slash", "line\nbreak", "\ttab", "\x01", "\x7f", "", " ", "1e5",
         "null"]
FIELDS = [{"name": "question"}, {"name": "meta.answer"}, {"name": "number"}, {"name": "hint", "required": False},
          {"name": "messages", "kind": "messages"}, {"name": "either", "kind": "either"}]
TOOL_CALL = pa.struct([("type", pa.string()), ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))])
MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string()), ("name", pa.string()), ("tool_calls", pa.list_(TOOL_CALL))])
SCHEMA = pa.schema([("question", pa.string()), ("meta", pa.struct([("answer", pa.int64()), ("level", pa.string())])),
                    ("number", pa.float64()), ("hint", pa.string()), ("messages", pa.list_(MESSAGE)),
                    ("either", pa.large_string()), ("unread", pa.binary())])


def text(rng, most=12):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(most)))


def message(rng):
    made = {"role": rng.choice(["system", "user", "assistant", "tool"]), "content": text(rng)}
    if rng.random() < 0.2:
        made["name"] = text(rng, 2)
    if rng.random() < 0.2:
        made["content"] = None
        made["tool_calls"] = [{"type": "function", "function": {"name": "f", "arguments": json.dumps({"x": 1})}}]
    return made


def row(rng):
    made = {"question": text(rng), "meta": {"answer": rng.randrange(-2**62, 2**62), "level": rng.choice(["easy", "hard"])},
            "number": rng.choice([0.1, 1.0, -0.0, 1e300, 5e-324, 123456789.0, rng.random()]),
            "messages": [message(rng) for _ in range(1 + rng.randrange(4))], "either": text(rng)}
    if rng.random() < 0.5:
        made["hint"] = text(rng)
    return made


def as_lines(rows):
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows).encode()


class Columnar(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @classmethod
    def tearDownClass(cls):
        cls.program.stdin.close()
        status = cls.program.wait(timeout=60)
        cls.program.stdout.close()
        assert status == 0, f"the program ended with {status}"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ask(self, paths, fields=FIELDS, **question):
        paths = [str(path) for path in (paths if isinstance(paths, list) else [paths])]
        self.program.stdin.write(json.dumps({"paths": paths, "fields": fields, **question}) + "\n")
        self.program.stdin.flush()
        return json.loads(self.program.stdout.readline())

    def values(self, paths, fields=FIELDS, **question):
        answer = self.ask(paths, fields, **question)
        self.assertNotIn("error", answer, answer.get("error"))
        return answer

    def error(self, paths, fields=FIELDS, **question):
        answer = self.ask(paths, fields, **question)
        self.assertIn("error", answer)
        return answer["error"]

    def lines(self, rows, name="rows.jsonl"):
        (self.folder / name).write_bytes(as_lines(rows))
        return self.folder / name

    def parquet(self, table, name="rows.parquet", **layout):
        pa.parquet.write_table(table, self.folder / name, **layout)
        return self.folder / name

    def stream(self, table, name="rows.arrow", rows=1000):
        with pa.OSFile(str(self.folder / name), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
        return self.folder / name

    def compressed(self, content):
        gz, zst, frames = self.folder / "rows.jsonl.gz", self.folder / "rows.jsonl.zst", self.folder / "frames.jsonl.zst"
        gz.write_bytes(gzip.compress(content))
        zst.write_bytes(zstandard.ZstdCompressor(level=19, write_checksum=True).compress(content))
        half = len(content) // 2
        frames.write_bytes(b"".join(zstandard.ZstdCompressor(threads=2).compress(part)
                                    for part in (content[:half], content[half:])))
        return [gz, zst, frames]

    def layouts(self, table):
        """The table in every way to write it that is worth telling apart."""
        rows = table.num_rows
        for number, group in enumerate((1, 7, 100, rows)):
            yield self.parquet(table, f"groups-{number}.parquet", row_group_size=group)
        for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
            yield self.parquet(table, f"{codec}.parquet", compression=codec, row_group_size=50, data_page_size=100,
                               write_page_checksum=True)
        yield self.parquet(table, "plain.parquet", use_dictionary=False, data_page_version="2.0", version="2.6")
        yield self.parquet(table, "old.parquet", version="1.0", store_schema=False)
        encoded = table.set_column(0, "question", table["question"].dictionary_encode())
        yield self.parquet(encoded, "dictionary.parquet")
        yield self.stream(table, "stream.arrow", 13)
        yield self.stream(encoded.unify_dictionaries(), "dictionary.arrow", 13)
        with pa.OSFile(str(self.folder / "file.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=17)
        yield self.folder / "file.arrow"
        for codec in ("uncompressed", "lz4", "zstd"):
            pa.feather.write_feather(table, str(self.folder / f"{codec}.feather"), compression=codec, chunksize=31)
            yield self.folder / f"{codec}.feather"

    def test_every_layout_gives_the_rows_of_the_lines_shuffled_and_through_a_resume(self):
        for seed in range(4):
            rng = random.Random(seed)
            rows = [row(rng) for _ in range(rng.choice([1, 40, 300, 1000]))]
            lines = self.lines(rows)
            order = {"shuffle": True, "seed": seed, "count": 2 * len(rows)}  # into a second epoch
            expected = self.values(lines, **order)
            middle = len(rows) * 3 // 4
            for path in [*self.compressed(as_lines(rows)), *self.layouts(pa.Table.from_pylist(rows, schema=SCHEMA))]:
                with self.subTest(seed=seed, path=path.name):
                    self.assertEqual(self.values(path, **order), expected)
                    first = self.values(path, **order | {"count": middle})
                    saved = {name: first[name] for name in ("next", "fingerprint")}
                    rest = self.values(path, **order | {"count": 2 * len(rows) - middle, "resume": saved})
                    self.assertEqual(first["values"] + rest["values"], expected["values"])
                    # the same data in lines
                    onward = self.values(lines, **order | {"count": 2 * len(rows) - middle, "resume": saved})
                    self.assertEqual(onward, rest)

    def test_parts_are_one_list_as_those_of_lines_are(self):
        rng = random.Random(7)
        rows = [row(rng) for _ in range(200)]
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        self.parquet(table.slice(0, 90), "a-0.parquet"), self.parquet(table.slice(90), "a-1.parquet")
        mixed = [self.folder / "a-0.parquet", self.lines(rows[90:], "rest.jsonl")]
        expected = self.values(self.lines(rows), shuffle=True, seed=3)
        for paths in (self.folder / "a-*.parquet", mixed):
            self.assertEqual(self.values(paths, shuffle=True, seed=3), expected)

    def test_content_parts_tools_and_sharegpt_are_conversations(self):
        parts = [{"messages": [{"role": "user",
                                "content": [{"type": "text", "text": "1 + 1"}, {"type": "text", "text": "?"}]}]}] * 3
        speakers = [{"messages": [{"from": "human", "value": "1 + 1"}, {"from": "gpt", "value": "2"}]}] * 3
        for rows in (parts, speakers):
            path = self.parquet(pa.Table.from_pylist(rows))
            fields = [{"name": "messages", "kind": "messages"}]
            self.assertEqual(self.values(path, fields), self.values(self.lines(rows), fields))

    def test_files_of_pandas_are_read(self):
        rows = [{"question": f"q{i}", "level": ["easy", "hard"][i % 2], "answer": i} for i in range(100)]
        frame = pandas.DataFrame(rows).astype({"level": "category"})
        fields = [{"name": "question"}, {"name": "level"}, {"name": "answer"}]
        frame.to_parquet(self.folder / "a.parquet")
        frame.to_feather(self.folder / "a.feather")
        for name in ("a.parquet", "a.feather"):
            self.assertEqual(self.values(self.folder / name, fields), self.values(self.lines(rows), fields))

    def test_other_types_are_the_text_that_stands_for_them(self):
        table = pa.table({"a": pa.array([decimal.Decimal("12.50")]), "b": pa.array([20000], pa.date32()),
                          "c": pa.array([3], pa.int8()), "d": pa.array(["x"]).dictionary_encode(),
                          "e": pa.array(["v"], pa.string_view()), "f": pa.array([1.5], pa.float32())})
        fields = [{"name": name} for name in "abcdef"]
        for path in (self.parquet(table), self.stream(table)):
            self.assertEqual(self.values(path, fields)["values"], [["12.50", "2024-10-04", 3, "x", "v", 1.5]])

    def test_every_problem_of_a_file_is_said_in_one_pass_with_its_row(self):
        rows = [{"question": "q", "answer": "a", "messages": [{"role": "user", "content": "x"}]} for _ in range(30_000)]
        rows[9]["question"] = None
        rows[19_999]["messages"] = []
        rows[29_999]["messages"] = [{"role": None, "content": "x"}]
        path = self.parquet(pa.Table.from_pylist(rows), row_group_size=1000)
        error = self.error(path, [{"name": "question"}, {"name": "answr"}, {"name": "messages", "kind": "messages"}])
        self.assertIn(f'{path}:10:1: error: field "question" must be a string or a number', error)
        self.assertIn(f'{path}:1:1: error: no field "answr"', error)
        self.assertIn("fields here: question, answer, messages", error)
        self.assertIn('answr_field = "answer"?', error)
        self.assertIn("likewise in 29999 more rows that were read", error)
        self.assertIn(f"{path}:20000:1: error: ", error)
        self.assertIn("the list of messages is empty", error)
        self.assertIn(f"{path}:30000:1: error: ", error)
        self.assertIn("message 1 has no role", error)

    def test_a_column_of_another_type_is_said(self):
        table = pa.table({"a": [[1]], "b": [True], "c": [{"x": "1"}], "d": [b"\x00"], "e": [float("nan")]})
        for name, words in (("a", "it is an array"), ("b", "it is a boolean"), ("c", 'c_field = "c.x" reads a field of it'),
                            ("d", "its column has the type binary, which is not read"), ("e", "it is null")):
            for path in (self.parquet(table), self.stream(table)):
                self.assertIn(words, self.error(path, [{"name": name}]))

    def test_a_column_of_a_type_that_is_not_read_is_said_also_where_the_field_may_be_missing(self):
        table = pa.table({"a": pa.array([1, None], pa.duration("s")), "b": ["x", "y"]})
        for path in (self.parquet(table), self.stream(table)):
            for required in (True, False):
                error = self.error(path, [{"name": "a", "required": required}, {"name": "b"}])
                self.assertIn("its column has the type duration[s], which is not read", error)
                self.assertEqual(error.count("error: "), 1, error)

    def test_a_column_that_is_there_twice_is_said(self):
        table = pa.table([pa.array(["x"]), pa.array(["y"])], names=["a", "a"])
        for path in (self.parquet(table), self.stream(table)):
            self.assertIn(f'{path} has the column "a" twice', self.error(path, [{"name": "a"}]))

    def test_bytes_that_are_no_utf8_are_said_with_their_row(self):
        texts = pa.array([b"fine"] * 5000 + [b"\xff\xfe"] + [b"fine"] * 10).cast(pa.binary())
        broken = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
        path = self.parquet(pa.table({"a": broken}))
        self.assertRegex(self.error(path, [{"name": "a"}]), f"{path}:5001:\\d+: error: this row is not a JSON object")
        self.assertIn("cannot be read", self.error(self.stream(pa.table({"a": broken})), [{"name": "a"}]))

    def test_a_row_that_is_longer_than_any_may_be_is_said(self):
        table = pa.table({"a": ["x", "y" * (65 << 20)]})
        for path in (self.parquet(table), self.stream(table)):
            self.assertIn(f"{path}:2: a row of more than 64 MiB", self.error(path, [{"name": "a"}]))

    def test_a_file_without_rows_is_said(self):
        for path in (self.parquet(pa.table({"a": pa.array([], pa.string())})),
                     self.stream(pa.table({"a": pa.array([], pa.string())}))):
            self.assertIn("holds no rows", self.error(path, [{"name": "a"}]))

    def test_a_file_that_is_cut_off_or_damaged_is_an_error_that_names_it_and_never_more(self):
        rng = random.Random(5)
        table = pa.Table.from_pylist([row(rng) for _ in range(300)], schema=SCHEMA)
        paths = [self.parquet(table, compression="zstd", write_page_checksum=True, row_group_size=100),
                 self.stream(table, rows=100)]
        pa.feather.write_feather(table, str(self.folder / "rows.feather"), compression="lz4", chunksize=100)
        for path in [*paths, self.folder / "rows.feather"]:
            whole = path.read_bytes()
            for _ in range(60):
                content = bytearray(whole)
                if rng.random() < 0.4:
                    del content[rng.randrange(len(content)):]
                for _ in range(rng.randrange(1, 4)):
                    if content:
                        content[rng.randrange(len(content))] = rng.randrange(256)
                damaged = self.folder / f"damaged{path.suffix}"
                damaged.write_bytes(content)
                answer = self.ask(damaged)
                self.assertIn(str(damaged), answer.get("error", str(damaged)))

    def test_a_damaged_page_is_said_with_its_row(self):
        path = self.parquet(pa.table({"a": [f"text {i}" for i in range(10_000)]}), use_dictionary=False, compression="none",
                            write_page_checksum=True, row_group_size=1000)
        content = path.read_bytes().replace(b"text 4242", b"text 4+42")
        path.write_bytes(content)
        error = self.error(path, [{"name": "a"}])
        self.assertRegex(error, f"{path}:40\\d1: this row, or one soon after it, cannot be read: ")
        self.assertIn("fetch it again", error)


if __name__ == "__main__":
    unittest.main()
