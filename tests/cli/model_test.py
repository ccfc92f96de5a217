"""`rlhf-run model`: one answer a line, so that another program can talk to it."""

import json
import math
import os
import shutil
import subprocess
import unittest

from support import DONE, MODEL, ROOT, Case, run, start

FOLDERS = (MODEL, ROOT / "pipelines/models/tiny-random", ROOT / "pipelines/models/tiny-text")


def lines_of(values):
    return "".join(json.dumps(value) + "\n" for value in values)


class Model(Case):
    def answers(self, function, values, *words, folder=MODEL):
        done = run("model", function, folder, *words, stdin=lines_of(values))
        self.assertEqual(done.returncode, DONE, done.stderr)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(values), done.stdout)
        return answers

    def test_tokenize_and_detokenize_are_inverse(self):
        texts = ["38+29=", "", "1", "0123456789+=", 'a "quoted" text', "two\nlines"]
        for folder in FOLDERS:
            with self.subTest(folder.name):
                ids = self.answers("tokenize", texts, folder=folder)
                vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
                self.assertTrue(all(0 <= id < vocabulary for line in ids for id in line))
                self.assertEqual(ids[1], [])
                self.assertEqual(self.answers("detokenize", ids, folder=folder), texts)

    def test_each_line_is_answered_before_the_next_is_read(self):
        with start("model", "tokenize", MODEL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for text in ("1+1=", "2"):
                process.stdin.write(json.dumps(text) + "\n")
                process.stdin.flush()
                self.assertEqual(len(json.loads(process.stdout.readline())), len(text))
            process.stdin.close()
        self.assertEqual(process.returncode, DONE)

    def test_logprobs_are_those_of_a_distribution(self):
        prompt = self.answers("tokenize", ["12+34="])[0]
        vocabulary = json.loads((MODEL / "config.json").read_text())["vocab_size"]
        every = self.answers("logprobs", [prompt + [id] for id in range(vocabulary)])
        self.assertTrue(all(len(line) == len(prompt) and max(line) <= 0 for line in every))
        self.assertAlmostEqual(sum(math.exp(line[-1]) for line in every), 1.0, places=5)
        for line in every:
            self.assertEqual(line[:-1], every[0][:-1])

    def test_logprobs_of_a_token_do_not_depend_on_what_follows(self):
        ids = self.answers("tokenize", ["12+34=46"])[0]
        whole, part = self.answers("logprobs", [ids, ids[:5]])
        for a, b in zip(whole, part):
            self.assertAlmostEqual(a, b, places=5)

    def test_logprobs_of_one_token_or_none_are_empty(self):
        self.assertEqual(self.answers("logprobs", [[5], []]), [[], []])

    def sample(self, *words):
        done = run("model", "sample", MODEL, *words)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout.splitlines()

    def test_the_likeliest_continuation_is_what_logprobs_call_likeliest(self):
        first = self.sample("--prompt", "12+34=", "--temperature", "0", "--max-new-tokens", "1", "--samples", "2")
        self.assertEqual(first[0], first[1])
        prompt = self.answers("tokenize", ["12+34="])[0]
        vocabulary = json.loads((MODEL / "config.json").read_text())["vocab_size"]
        last = [line[-1] for line in self.answers("logprobs", [prompt + [id] for id in range(vocabulary)])]
        self.assertEqual(self.answers("detokenize", [[last.index(max(last))]]), [first[0]])

    def test_samples_follow_the_seed(self):
        words = ("--prompt", "12+34=", "--samples", "20", "--temperature", "2", "--max-new-tokens", "6")
        first = self.sample(*words, "--seed", "1")
        self.assertEqual(len(first), 20)
        self.assertEqual(first, self.sample(*words, "--seed", "1"))
        self.assertNotEqual(first, self.sample(*words, "--seed", "2"))
        self.assertGreater(len(set(first)), 1)

    def test_json_tells_tokens_log_probabilities_and_how_a_sample_ended(self):
        words = ("--prompt", "12+34=", "--samples", "8", "--max-new-tokens", "5", "--json", "--seed", "3")
        samples = [json.loads(line) for line in self.sample(*words)]
        self.assertEqual(len(samples), 8)
        prompt = self.answers("tokenize", ["12+34="], "--add-special")[0]
        expected = self.answers("logprobs", [prompt + sample["tokens"] for sample in samples])
        config = json.loads((MODEL / "config.json").read_text())
        ends = config["eos_token_id"] if isinstance(config["eos_token_id"], list) else [config["eos_token_id"]]
        for sample, logprobs in zip(samples, expected):
            self.assertEqual(set(sample), {"text", "tokens", "logprobs", "finish"})
            ended = sample["tokens"][-1] in ends
            self.assertEqual(sample["finish"], "end_of_sequence" if ended else "length")
            self.assertEqual(len(sample["tokens"]) == 5 or ended, True)
            text = self.answers("detokenize", [sample["tokens"][:-1] if ended else sample["tokens"]])[0]
            self.assertEqual(sample["text"], text)
            for ours, theirs in zip(sample["logprobs"], logprobs[len(prompt) - 1:], strict=True):
                self.assertAlmostEqual(ours, theirs, places=4)

    def test_the_text_that_streams_is_the_text_of_the_tokens(self):
        words = ("--prompt", "12+34=", "--samples", "40", "--temperature", "2", "--max-new-tokens", "7")
        self.assertEqual(self.sample(*words), [json.loads(line)["text"] for line in self.sample(*words, "--json")])

    def test_chat_puts_the_prompt_into_the_template_of_the_folder(self):
        folder = self.folder / "chat"
        shutil.copytree(MODEL, folder)
        (folder / "chat_template.jinja").write_text(
            "{% for m in messages %}{{ m.role[0] | replace('u', '1') }}{{ m.content }}{% endfor %}"
            "{% if add_generation_prompt %}={% endif %}")
        words = ("--temperature", "0", "--max-new-tokens", "6")
        done = run("model", "sample", folder, "--chat", "--prompt", "2+34", *words)
        self.assertEqual(done.stdout.splitlines(), self.sample("--prompt", "12+34=", *words), done.stderr)

    def test_what_is_flushed_is_whole_characters(self):
        words = ("--prompt", "a", "--samples", "6", "--temperature", "3", "--max-new-tokens", "60")
        with start("model", "sample", FOLDERS[2], *words, stdout=subprocess.PIPE) as process:
            pieces = iter(lambda: os.read(process.stdout.fileno(), 1 << 20), b"")
            text = "".join(piece.decode("utf-8", "strict") for piece in pieces)
        self.assertEqual(process.returncode, DONE)
        self.assertGreaterEqual(text.count("\n"), 6)

    def test_top_k_of_one_is_the_likeliest(self):
        words = ("--prompt", "12+34=", "--max-new-tokens", "4")
        self.assertEqual(self.sample(*words, "--top-k", "1", "--samples", "3"), self.sample(*words, "--temperature", "0") * 3)


class WrongLine(Case):
    def refuse(self, function, stdin, *texts, folder=MODEL):
        done = run("model", function, folder, stdin=stdin)
        self.assert_refused(done, *texts)
        return done.stdout.splitlines()

    def test_the_line_is_named_and_those_before_it_are_answered(self):
        self.assertEqual(len(self.refuse("tokenize", '"1"\n"2"\n3\n', "standard input, line 3", "JSON string")), 2)
        self.assertEqual(len(self.refuse("detokenize", "[3]\n\n[4, -1]\n", "standard input, line 3", "-1 is not a token id")), 1)
        self.assertEqual(len(self.refuse("logprobs", "[3, 4]\n[3, 98]\n", "standard input, line 2",
                                         "98 is not a token id from 0 to 97")), 1)

    def test_lines_that_are_not_json(self):
        for function in ("tokenize", "detokenize", "logprobs"):
            with self.subTest(function):
                self.refuse(function, "[3]\n[3,\n" if function != "tokenize" else '"3"\n"3\n', "standard input, line 2")

    def test_wrong_entries(self):
        for line in ('["3"]', "[1.5]", "[null]", "[18446744073709551615]", "{}", '"3"'):
            with self.subTest(line):
                self.refuse("logprobs", line + "\n", "standard input, line 1")
                self.refuse("detokenize", line + "\n", "standard input, line 1")

    def test_more_tokens_than_positions(self):
        self.refuse("logprobs", json.dumps([3] * 65) + "\n", "standard input, line 1: 65 tokens", "64 positions")

    def test_a_prompt_that_leaves_no_room(self):
        done = run("model", "sample", MODEL, "--prompt", "1" * 60, "--max-new-tokens", "10")
        self.assert_refused(done, "64 positions")

    def test_an_empty_prompt(self):
        self.assert_refused(run("model", "sample", MODEL, stdin=""), "prompt")

    def test_missing_folder(self):
        for function in ("tokenize", "detokenize", "logprobs", "sample"):
            with self.subTest(function):
                self.refuse(function, "[1]\n", str(self.folder / "none"), "No such file or directory",
                            folder=self.folder / "none")


if __name__ == "__main__":
    unittest.main()
