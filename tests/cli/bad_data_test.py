"""Data files that are broken, and places that cannot be written: said before training where that is possible."""

import gzip
import json
import os
import subprocess
import unittest
import zlib

from support import (DONE, FAILED, MODEL, PPO, SMALL, TERMINATED, WRONG_PIPELINE, Case, metrics_so_far, read_safetensors, run,
                     sets, small_disk, start, wait_for)

GOOD = '{"prompt": "1+1=", "label": "2"}\n'

class BadData(Case):
    def refuse(self, content, *texts, problems=1):
        path = self.write("data.jsonl", content)
        done = run("run", PPO, "--run-dir", self.folder / "run", *sets(**SMALL, **{"nodes.prompts.path": str(path)}))
        self.assert_refused(done, *texts, problems=problems)
        self.assertFalse((self.folder / "run/metrics.jsonl").exists(), "something was run")

    def test_broken_line(self):
        self.refuse(GOOD * 2 + '{"prompt": "1+1=", "label": }\n' + GOOD, "data.jsonl:3:29: error: this line is not a JSON object")

    def test_truncated_last_line(self):
        self.refuse(GOOD + '{"prompt": "1+1', "data.jsonl:2:")

    def test_missing_field(self):
        self.refuse(GOOD + '{"prompt": "1+1=", "lable": "2"}\n', 'data.jsonl:2:1: error: no field "label"',
                    "fields here: prompt, lable", '"lable"?')

    def test_field_missing_everywhere_is_one_problem(self):
        self.refuse('{"question": "1+1=", "label": "2"}\n' * 30, 'data.jsonl:1:1: error: no field "prompt"', "29 more lines")

    def test_one_line_more_was_read(self):
        self.refuse('{"question": "1+1=", "label": "2"}\n' * 2, "likewise in 1 more line that was read")

    def test_field_of_another_type(self):
        self.refuse('{"prompt": ["1+1="], "label": "2"}\n', 'data.jsonl:1:1: error: field "prompt" must be a string or a number',
                    "array")

    def test_a_field_of_another_type_everywhere_is_one_problem(self):
        self.refuse('{"prompt": ["1+1="], "label": "2"}\n' * 30, "it is an array", "likewise in 29 more lines", problems=1)

    def test_line_that_is_no_object(self):
        self.refuse(GOOD + "[1, 2]\n", "data.jsonl:2:1: error: each line must be a JSON object", "this is an array")

    def test_every_broken_line_at_once(self):
        self.refuse("{\n" + GOOD + "x\n", "data.jsonl:1:", "data.jsonl:3:1", problems=2)

    def test_bytes_that_are_no_text(self):
        self.refuse(GOOD.encode() + b'{"prompt": "\xff\xfe", "label": "2"}\n', "data.jsonl:2:")

    def test_nesting_without_end(self):
        self.refuse('{"prompt": ' + "[" * 100_000 + "\n", "data.jsonl:1:")

    def test_every_pattern_folder_and_list(self):
        self.write("a.jsonl", GOOD)
        (self.folder / "b.jsonl.gz").write_bytes(gzip.compress(GOOD.encode()) + gzip.compress(GOOD.encode()))
        names = [str(self.folder), str(self.folder / "*.jsonl*"), [str(self.folder / "a.jsonl"), str(self.folder / "b.jsonl.gz")]]
        for number, path in enumerate(names):
            with self.subTest(path=path):
                self.run_ppo(name=f"run{number}", **{"nodes.prompts.path": path})

    def test_path_that_names_no_data(self):
        (self.folder / "empty").mkdir()
        for path, text in (("empty", "empty holds no *.jsonl, *.jsonl.gz, *.jsonl.zst, *.parquet, *.arrow or *.feather"),
                           ("x-*.jsonl", "no file matches "), ("x.jsonl", "there is no file ")):
            with self.subTest(path=path):
                done = run("validate", PPO, *sets(**{"nodes.prompts.path": str(self.folder / path)}))
                self.assert_refused(done, text)

    def test_comma_separated_values_are_said_to_be_that(self):
        path = self.write("rows.csv", "prompt,label\n1+1=,2\n1+2=,3\n")
        done = run("validate", PPO, "--data", *sets(**{"nodes.prompts.path": str(path)}))
        self.assert_refused(done, "rows.csv:1:1: error: this is no JSON", "CSV is not read", "likewise in 2 more lines",
                            "csv.DictReader")

    def test_weights_that_do_not_fit_the_paths(self):
        path = str(self.write("data.jsonl", GOOD))
        done = run("validate", PPO, *sets(**{"nodes.prompts.path": path, "nodes.prompts.weights": [1, 2]}))
        self.assert_refused(done, "2 weights for 1 path")

    def test_generate_adds_no_special_tokens_to_conversations_unless_it_is_told_to_which_is_refused(self):
        path = str(self.write("data.jsonl", '{"messages": [{"role": "user", "content": "1+1="}], "label": "2"}\n'))
        chats = {"nodes.prompts.path": path, "nodes.prompts.messages_field": "messages", "nodes.prompts.model": "actor"}
        self.assertNotIn("add_special_tokens", run("validate", PPO, *sets(**chats)).stderr)
        done = run("validate", PPO, *sets(**chats, **{"nodes.generate.add_special_tokens": True}))
        self.assert_refused(done, "must have the same add_special_tokens", "add_special_tokens is false in "
                            "'prompts' and true here", "help: add_special_tokens = false in 'generate'")

    def test_conversations_without_a_model(self):
        path = str(self.write("data.jsonl", '{"messages": [{"role": "user", "content": "1+1="}], "label": "2"}\n'))
        done = run("validate", PPO, *sets(**{"nodes.prompts.path": path, "nodes.prompts.messages_field": "messages",
                                             "nodes.generate.add_special_tokens": False}))
        self.assert_refused(done, "messages_field needs model: its chat template writes the prompts")

    def test_a_parquet_file_is_read_or_the_command_that_fetches_what_reads_it_is_said(self):
        path = self.write("a file's/data.parquet", "PAR1")
        refused = run("validate", PPO, *sets(**{"nodes.prompts.path": str(path)}))
        words = ["data.parquet"]
        if "which this build does not read yet" in refused.stderr:
            words += ["data.parquet is a Parquet file", "./rlhf-run --setup --parquet"]
        else:
            words += ["data.parquet cannot be read: ", "fetch it again"]
        self.assert_refused(refused, *words)

    def test_lines_that_are_called_parquet_are_said_to_be_that(self):
        path = self.write("data.parquet", GOOD)
        refused = run("validate", PPO, *sets(**{"nodes.prompts.path": str(path)}))
        self.assert_refused(refused, f"--set:1:20: error: {path} is no Parquet file, although its name says so: "
                            "it begins as JSON does", "help: if it holds rows of JSON, call it data.jsonl")

    def test_a_file_that_is_wrong_is_shown_at_the_key_that_names_it(self):
        for name, content in (("empty.jsonl", ""), ("cut.jsonl.gz", gzip.compress(GOOD.encode() * 100)[:-9])):
            path = self.write(name, content)
            pipeline = self.layer(f'[nodes.prompts]\npath = "{name}"\n')
            for words in (["validate", "--data", pipeline], ["run", pipeline, "--run-dir", self.folder / "run"]):
                with self.subTest(name=name, command=words[0]):
                    self.assert_refused(run(*words), f"p.toml:3:8: error: {path}", f'3 | path = "{name}"')
            self.assert_refused(run("validate", "--data", PPO, *sets(**{"nodes.prompts.path": str(path)})),
                                f"--set:1:20: error: {path}")

    def test_a_scorer_that_does_not_load_is_shown_at_the_key_that_names_it(self):
        self.write("reward.py", "import no_such_module\n")
        pipeline = self.layer('[nodes.score]\ntype = "python_scorer"\nfile = "reward.py"\n')
        self.assert_refused(run("run", pipeline, "--run-dir", self.folder / "run"), "p.toml:4:8: error: node 'score', ",
                            "no_such_module")

    def test_truncated_gzip(self):
        self.refuse(gzip.compress(GOOD.encode() * 100)[:-9], "data.jsonl: the compressed data is cut off")

    def test_a_gigabyte_of_one_letter_in_gzip(self):
        compressor = zlib.compressobj(wbits=31)
        piece = b"a" * (1 << 20)
        self.refuse(b"".join(compressor.compress(piece) for _ in range(1024)) + compressor.flush(),
                    "data.jsonl:1: a line of more than 64 MiB")

    def test_prompts_that_are_too_long_are_left_out_and_counted(self):
        data = self.write("data.jsonl", GOOD + '{"prompt": "11111111+1=", "label": "11111112"}\n')
        limit = {"nodes.prompts.path": str(data), "nodes.prompts.model": "actor", "nodes.prompts.max_prompt_tokens": 8}
        refused = run("run", PPO, "--run-dir", self.folder / "run", *sets(**SMALL, **limit))
        self.assert_refused(refused, "data.jsonl:2:1: error: the prompt has 11 tokens, max_prompt_tokens is 8",
                            'too_long = "drop"')
        finished = self.run_ppo(**limit, **{"nodes.prompts.too_long": "drop"})
        self.assertIn("1 of 2 rows left out: too long", finished.stdout + finished.stderr)
        self.assertTrue(all(row["data/rows_dropped"] == 1 for row in finished.metrics), finished.metrics)

    def test_empty_file(self):
        self.refuse("", "data.jsonl holds no rows")

    def test_missing_file(self):
        done = run("run", PPO, "--run-dir", self.folder / "run",
                   *sets(**SMALL, **{"nodes.prompts.path": str(self.folder / "none.jsonl")}))
        self.assert_refused(done, "--set:1:20: error: ", f"there is no file {self.folder}/none.jsonl")

    def test_prompt_that_is_too_long_is_refused_with_its_length(self):
        data = self.write("data.jsonl", '{"prompt": "11111111+1=", "label": "11111112"}\n')
        done = run("run", PPO, "--run-dir", self.folder / "run", *sets(**SMALL, **{"nodes.prompts.path": str(data)}))
        self.assert_refused(done, "data.jsonl:1:1: error: the prompt has 11 tokens, max_prompt_tokens of node 'generate' is 8",
                            "max_prompt_tokens >= 11 in [nodes.generate]")


class ChangedData(Case):
    """Somebody changes the data of a run while it goes on."""

    ROWS = [f'{{"prompt": "{number}+1=", "label": "{number + 1}"}}\n' for number in range(1, 9)]

    def setUp(self):
        super().setUp()
        self.data = self.write("data.jsonl", "".join(self.ROWS))
        self.run_folder = self.folder / "run"

    def begin(self):
        """A run that has saved and goes on for long."""
        long = {"nodes.prompts.path": str(self.data), "pipeline.iterations": 5000, "checkpoint.every_iterations": 2}
        process = start("run", PPO, "--run-dir", self.run_folder, *sets(**{**SMALL, **long}), stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        wait_for("a checkpoint", lambda: (self.run_folder / "checkpoint").exists())
        return process

    def assert_fails_and_goes_on(self, process, *texts):
        """It ends with an error, and goes on from its checkpoint once the file is back."""
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, FAILED, said)
        for text in ("error: node 'prompts' failed in iteration ", *texts, "help: bring it back as it was",
                     f"resume with: rlhf-run resume {self.run_folder}"):
            self.assertIn(text, said)
        self.data.write_text("".join(self.ROWS))
        saved = json.loads((self.run_folder / "checkpoint/manifest.json").read_text())["iterations"]
        done = run("resume", self.run_folder, *sets(**{"pipeline.iterations": saved + 1}))
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_a_file_that_is_cut_short_ends_the_run_with_its_name(self):
        process = self.begin()
        before = self.data.stat().st_size
        os.truncate(self.data, 0)
        self.assert_fails_and_goes_on(process, f"{self.data} has been cut short while it is being read: 0 bytes, "
                                      f"{before} when it was opened")

    def test_a_file_that_is_written_over_ends_the_run_with_its_name(self):
        process = self.begin()
        self.data.write_text("".join(reversed(self.ROWS)))
        self.assert_fails_and_goes_on(process, f"{self.data} has changed while it is being read: what was line ")

    def test_a_file_that_is_appended_to_touched_or_replaced_ends_no_run(self):
        process = self.begin()
        with open(self.data, "a") as file:
            file.write(self.ROWS[0])
        os.utime(self.data)
        self.write("other", "no rows").rename(self.data)
        before = len(metrics_so_far(self.run_folder))
        wait_for("more iterations", lambda: len(metrics_so_far(self.run_folder)) > before + 5)
        process.terminate()
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, TERMINATED, said)


class RunFolder(Case):
    def test_a_folder_that_holds_a_run_is_left_alone(self):
        first = self.run_ppo()
        before = {path: path.read_bytes() for path in first.folder.rglob("*") if path.is_file()}
        done = run("run", PPO, "--run-dir", first.folder, *sets(**SMALL))
        self.assert_refused(done, str(first.folder), "already holds a run", "--run-dir")
        self.assertEqual({path: path.read_bytes() for path in first.folder.rglob("*") if path.is_file()}, before)

    def test_a_file_in_place_of_the_folder(self):
        path = self.write("file", "x")
        self.assert_refused(run("run", PPO, "--run-dir", path, *sets(**SMALL)), str(path), "--run-dir")
        self.assert_refused(run("run", PPO, "--run-dir", path / "run", *sets(**SMALL)), str(path / "run"), "--run-dir")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_without_the_right_to_write(self):
        place = self.folder / "closed"
        place.mkdir(mode=0o500)
        self.assert_refused(run("run", PPO, "--run-dir", place / "run", *sets(**SMALL)), str(place / "run"), "Permission denied")

    def test_a_place_that_cannot_hold_files(self):
        self.assert_refused(run("run", PPO, "--run-dir", "/proc/run", *sets(**SMALL)), "/proc/run", "--run-dir")

    def test_a_refused_run_can_be_repeated_at_the_same_place(self):
        overrides = {**SMALL, "nodes.prompts.path": str(self.write("data.jsonl", "{"))}
        self.assertEqual(run("run", PPO, "--run-dir", self.folder / "run", *sets(**overrides)).returncode, 78)
        self.write("data.jsonl", GOOD)
        done = run("run", PPO, "--run-dir", self.folder / "run", *sets(**overrides))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_folder_that_is_renamed_ends_the_run_at_its_next_checkpoint(self):
        folder, later = self.folder / "run", self.folder / "renamed"
        process = start("run", str(PPO), "--run-dir", str(folder),
                        *sets(**{**SMALL, "pipeline.iterations": 5000, "checkpoint.every_iterations": 4}), stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
        wait_for("a checkpoint", lambda: (folder / "checkpoint").exists(), seconds=60)
        folder.rename(later)
        out, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, FAILED, out)
        self.assertIn(f"error: the run folder {folder} is gone: it was removed or renamed while the run went on (", said)
        self.assertRegex(said, r"last checkpoint: \S+/checkpoints/\d+, while its folder was there\n")
        self.assertTrue(out.endswith(f"\n  run folder  {folder} (gone: removed or renamed while the run went on)\n"), out)
        saved = json.loads((later / "checkpoint" / "manifest.json").read_text())["iterations"]
        resumed = run("resume", later, *sets(**{"pipeline.iterations": saved + 1}))
        self.assertEqual(resumed.returncode, DONE, resumed.stderr)


class FullDisk(Case):
    def checkpoint_bytes(self):
        return sum(path.stat().st_size for path in MODEL.iterdir())

    def run_on(self, size, **overrides):
        with small_disk(self.folder / "disk", size) as disk:
            folder = disk / "run"
            done = run("run", PPO, "--run-dir", folder, *sets(**{**SMALL, **overrides}))
            saved = folder / "checkpoint/actor/model.safetensors"
            weights = read_safetensors(saved) if saved.exists() else None
            return done, weights

    def assert_stopped(self, done, *texts):
        self.assertEqual(done.returncode, FAILED, done.stderr + done.stdout)
        for text in ("No space left on device", *texts):
            self.assertIn(text, done.stderr)
        self.assertNotIn("internal error", done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 12, done.stderr)
        self.assertRegex(done.stderr, rf"\Awarning: the disk of {self.folder}/disk/run has .* left; a checkpoint takes ")

    # Whichever file finds no room: nothing was run and nothing is left in the way of the next start, or the run has begun and
    # failed.
    def test_a_disk_that_is_full_before_the_run_begins_is_refused_and_leaves_nothing(self):
        codes = []
        for pages in range(1, 11):
            with self.subTest(pages=pages), small_disk(self.folder / f"disk-{pages}", 4096 * pages) as disk:
                done = run("run", PPO, "--run-dir", disk / "run", *sets(**SMALL))
                codes.append(done.returncode)
                self.assertIn("No space left on device", done.stderr)
                self.assertEqual(done.returncode == WRONG_PIPELINE, not (disk / "run").exists(), done.stderr)
        self.assertEqual(codes, sorted(codes, reverse=True), "either 78 or 1")
        self.assertEqual(set(codes), {WRONG_PIPELINE, FAILED})

    def test_a_disk_that_holds_no_checkpoint_stops_the_run(self):
        done, weights = self.run_on(int(1.5 * self.checkpoint_bytes()))
        self.assert_stopped(done, str(self.folder / "disk/run/checkpoint"))
        self.assertIsNone(weights)

    def test_the_last_whole_checkpoint_survives_a_full_disk(self):
        # Room for one checkpoint of two models (the weights twice and two moments of each), not for the next beside it.
        done, weights = self.run_on(int(1.4 * 2 * 4 * self.checkpoint_bytes()),
                                    **{"checkpoint.every_iterations": 1, "pipeline.iterations": 3})
        self.assert_stopped(done, str(self.folder / "disk/run/checkpoint"),
                            "last checkpoint: " + str(self.folder / "disk/run/checkpoints/1"))
        self.assertIsNotNone(weights)
        sizes = {name: (dtype, shape, len(content)) for name, (dtype, shape, content) in weights.items()}
        start = read_safetensors(MODEL / "model.safetensors")
        self.assertEqual(sizes, {name: (dtype, shape, len(content)) for name, (dtype, shape, content) in start.items()})


if __name__ == "__main__":
    unittest.main()
