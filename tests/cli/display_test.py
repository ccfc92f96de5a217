"""What a run shows on a terminal and in a pipe: the redrawn line, colours, the curve, sample texts, and text that tries to steer
it."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import unittest

from support import (DONE, INTERRUPTED, MODEL, PPO, PROGRAM, ROOT, SMALL, WRONG_USAGE, Case, on_terminal, repeatable, resize, run,
                     sets)

COLOUR = re.compile(r"\x1b\[\d*m")
BARS, SIGNS = "▁▂▃▄▅▆▇█", "_.,-~+*#"


def frames_of(screen):
    """What stood on the line one after the other, without colours."""
    return [COLOUR.sub("", frame) for frame in screen.split("\r\x1b[K")]


class OnATerminal(Case):
    def small(self, iterations=20, **overrides):
        return ["run", PPO, "--run-dir", self.folder / "run", *sets(**{**SMALL, "pipeline.iterations": iterations, **overrides})]

    def test_a_line_with_a_bar_and_a_curve_is_redrawn_and_gives_way_to_the_summary(self):
        code, screen = on_terminal(*self.small(), columns=200)
        self.assertEqual(code, DONE)
        first, *live, last = frames_of(screen)
        self.assertEqual(first, "")
        for frame in live:
            self.assertRegex(frame, r"^ppo  [#-]{16} \d+ %  .*iteration \d+/20.*   in flight \S+/8.4k   cpu:1 \w+   cpu \w+$")
        self.assertTrue(any(re.search(r"about \d\S* s left   iteration \d+/20   score \d\.\d+   held_out \d\.\d+   KL .* "
                                      rf"tok/s   [{BARS}]+   in", frame) for frame in live), live)
        self.assertRegex(last, r"^ppo finished: 20 iterations in ")
        self.assertRegex(last, rf"  score .* \(mean of the first 3 and the last 10 iterations\)  [{BARS}]{{20}}\n")

    def test_there_are_colours_unless_they_are_unwanted(self):
        self.assertIn("\x1b[32m", on_terminal(*self.small(2), columns=200)[1])
        shutil.rmtree(self.folder / "run")
        self.assertIsNone(COLOUR.search(on_terminal(*self.small(2), columns=200, NO_COLOR="1")[1]))

    def test_where_the_locale_is_not_utf8_the_curve_is_ascii(self):
        screen = on_terminal(*self.small(), columns=200, LANG="C")[1]
        self.assertTrue(screen.isascii())
        self.assertRegex(frames_of(screen)[-1], rf"iterations\)  [{re.escape(SIGNS)}]{{20}}\n")

    def test_a_dumb_terminal_gets_a_line_an_iteration(self):
        for term in ("dumb", ""):
            with self.subTest(term=term):
                screen = on_terminal(*self.small(2), columns=200, TERM=term)[1]
                self.assertNotIn("\x1b", screen)
                self.assertEqual(len(re.findall(r"(?m)^ppo  iteration \d/2 ", screen)), 2)
                shutil.rmtree(self.folder / "run")

    def test_a_narrow_terminal_shows_one_line_that_still_says_how_long_it_takes(self):
        live = frames_of(on_terminal(*self.small(), columns=60)[1])[1:-1]
        for frame in live:
            self.assertLess(len(frame), 60)
            self.assertNotIn("\n", frame)
        self.assertTrue(any(frame.startswith("ppo  #") and " left " in frame for frame in live), live)

    def test_the_line_is_as_wide_as_the_terminal_has_become(self):
        wide, narrow = [], []

        def narrow_then_stop(terminal, process, screen):
            live = frames_of(screen)[1:-1]
            if not wide and live:
                resize(terminal, 50)
                wide.extend(live)
            elif not narrow:
                narrow.extend(frame for frame in live[len(wide):] if len(frame) < 50)
                if narrow:
                    process.send_signal(signal.SIGINT)

        # As many iterations as no machine does before the line is drawn twice: the run is stopped once it was seen narrow.
        code, _ = on_terminal(*self.small(1000000), columns=200, watch=narrow_then_stop)
        self.assertEqual(code, INTERRUPTED)
        self.assertGreater(max(map(len, wide)), 60)

    def test_samples_stand_above_the_line(self):
        screen = on_terminal(*self.small(3), "--show-samples", columns=100)[1]
        text = COLOUR.sub("", screen).replace("\r\x1b[K", "")
        self.assertEqual(
            len(re.findall(r"iteration \d/3   score .*\n  prompt    \S+=\n  response  .*  \(score [01]\.000\)\n", text)), 3, text)


class ShownSamples(Case):
    def test_two_samples_of_each_iteration_with_their_score(self):
        plain = self.run_ppo("plain")
        done = run("run", PPO, "--run-dir", self.folder / "run", "--show-samples", *sets(**SMALL))
        self.assertEqual(done.returncode, DONE, done.stderr)
        first = done.stdout.split("iteration 1/2")[1].split("iteration 2/2")[0].splitlines()[1:]
        self.assertEqual([line[:12] for line in first[:4]], ["  prompt    ", "  response  "] * 2)
        self.assertEqual(done.stdout.count("  prompt    "), 4)
        # They are the run's, and they change nothing.
        metrics = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(repeatable(metrics), repeatable(plain.metrics))
        self.assertNotIn("  prompt    ", plain.stdout)

    def test_what_is_shown_is_what_the_run_sampled(self):
        folder = self.folder / "run"
        done = run("run", self.saving_pipeline(), "--run-dir", folder, "--show-samples", *sets(**SMALL))
        self.assertEqual(done.returncode, DONE, done.stderr)
        samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
        shown = re.findall(r"  prompt    (.*)\n  response  (.*)  \(score (.*)\)\n", done.stdout)
        escape = lambda text: text.replace("\n", "\\n")
        for i, group in enumerate((0, 1)):
            of = [row for row in samples if row["iteration"] == 0 and row["group"] == group and row["sample"] == 0][0]
            self.assertEqual(shown[i], (escape(of["prompt"]), escape(of["response"]), f"{of['score']:.3f}"))

    def test_of_each_so_many_iterations(self):
        done = run("run", PPO, "--run-dir", self.folder / "run", "--show-samples=2", *sets(**{**SMALL, "pipeline.iterations": 3}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(re.findall(r"(?m)^ppo  iteration (\d)/3 .*\n  prompt", done.stdout), ["1", "3"])

    def test_a_count_that_is_none_is_refused(self):
        self.assert_refused(run("run", PPO, "--show-samples=few"), "--show-samples", code=WRONG_USAGE)

    def test_a_pipeline_without_responses_says_that_there_is_nothing_to_show(self):
        done = run("run", ROOT / "pipelines/sft.toml", "--run-dir", self.folder / "run", "--show-samples", "--set",
                   "pipeline.iterations=1")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("warning: --show-samples shows nothing", done.stderr)


class TextThatSteers(Case):
    """Prompts, responses and names with control characters: a terminal gets escapes, a pipe the bytes."""

    def model_that_says_escape(self):
        """tiny-arithmetic, whose token of the digit 2 is ESC instead."""
        folder = self.folder / "model"
        shutil.copytree(MODEL, folder)
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        vocab = tokenizer["model"]["vocab"]
        vocab["\u011b"] = vocab.pop("2")  # how ByteLevel writes the byte 0x1B
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        (folder / "checksums.json").unlink(missing_ok=True)
        return folder

    def test_sample_escapes_on_a_terminal_only(self):
        words = ["model", "sample", self.model_that_says_escape(), "--prompt", "1+1=", "--temperature", "0", "--max-new-tokens",
                 "3"]
        code, screen = on_terminal(*words)
        self.assertEqual((code, "\x1b" in screen, "\\x1b" in screen), (DONE, False, True), screen)
        self.assertIn("\x1b", run(*words).stdout)

    def test_detokenize_escapes_on_a_terminal_only(self):
        ids = self.write("ids.jsonl", "[20]\n")
        master, slave = pty.openpty()
        with ids.open() as stdin:
            subprocess.run([PROGRAM, "model", "detokenize", self.model_that_says_escape()], stdin=stdin, stdout=slave, check=True,
                           timeout=60)
        os.close(slave)
        self.assertEqual(os.read(master, 100), b'"\\u001b"\r\n')  # JSON has an escape of its own
        os.close(master)

    def test_prompts_that_are_shown_cannot_steer_the_terminal(self):
        rows = [json.dumps({"prompt": "\x1b[2J\u009b\u202e1+1=", "answer": "2"})] * 16
        self.write("prompts.jsonl", "\n".join(rows) + "\n")
        model = self.model_that_says_escape()
        overrides = {**SMALL, "pipeline.iterations": 1, "nodes.prompts.path": str(self.folder / "prompts.jsonl"),
                     "nodes.prompts.label_field": "answer", "nodes.generate.max_prompt_tokens": 32}
        overrides.update({f"models.{name}.checkpoint": str(model) for name in ("actor", "critic", "reference")})
        code, screen = on_terminal("run", PPO, "--run-dir", self.folder / "run", "--show-samples", *sets(**overrides),
                                   columns=120)
        self.assertEqual(code, DONE, screen)
        self.assertIn("  prompt    \\x1b[2J", screen)
        self.assertEqual(set(re.findall(r"\x1b[^m]*?[A-Za-z]", screen)), {"\x1b[K", *COLOUR.findall(screen)})

    def test_errors_escape_what_files_say_everywhere(self):
        path = self.write("p.toml", '[pipeline]\nname = "a\x9b\x1b[31m"\n')
        for done in (run("validate", path), run("validate", self.folder / "no\x1b[31mfile.toml"), run("frob\x1b[31m\x9b"),
                     run("top", self.folder / "no\x1b[31m"), run("describe", "\x1b[31m")):
            self.assertNotEqual(done.returncode, DONE)
            self.assertNotRegex(done.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn("\\x1b[31m", done.stderr.replace("\\u001b", "\\x1b").replace("\\u001B", "\\x1b"))

    def test_names_of_folders_are_escaped(self):
        folder = self.folder / "a\x1b[31mb"
        shutil.copytree(MODEL, folder)
        done = run("model", "verify", folder)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("a\\x1b[31mb: ", done.stdout)


class ShortRuns(Case):
    def test_of_one_iteration_the_summary_has_its_score_and_compares_nothing(self):
        done = self.run_ppo(**{"pipeline.iterations": 1})
        self.assertEqual(re.search(r"(?m)^  score +(.*)$", done.stdout).group(1), f"{done.metrics[0]['reward/score_mean']:.3f}")


if __name__ == "__main__":
    unittest.main()
