"""`rlhf-run model`: one answer a line, so that another program can talk to it."""

import json
import math
import os
import shutil
import struct
import subprocess
import unittest

from support import DONE, FAILED, MODEL, ROOT, WRONG_USAGE, Case, read_safetensors, run, safetensors, start

GOLDEN = ROOT / "tests/golden/models"

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

    def test_logprobs_of_bfloat16_weights_are_near(self):
        ids = self.answers("tokenize", ["12+34=46"])
        exact, rounded = self.answers("logprobs", ids)[0], self.answers("logprobs", ids, "--dtype", "bfloat16")[0]
        for a, b in zip(exact, rounded):
            self.assertAlmostEqual(a, b, delta=0.05 * abs(a) + 0.05)

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
        words = ("--prompt", "12+34=", "--samples", "8", "--max-new-tokens", "5", "--tokens", "--seed", "3")
        samples = [json.loads(line) for line in self.sample(*words)]
        self.assertEqual(len(samples), 8)
        prompt = self.answers("tokenize", ["12+34="], "--add-special")[0]
        expected = self.answers("logprobs", [prompt + sample["tokens"] for sample in samples])
        config = json.loads((MODEL / "config.json").read_text())
        ends = config["eos_token_id"] if isinstance(config["eos_token_id"], list) else [config["eos_token_id"]]
        for number, (sample, logprobs) in enumerate(zip(samples, expected)):
            self.assertEqual(list(sample), ["prompt", "row", "index", "text", "finish", "token_count", "logprob_sum", "seed",
                                            "tokens", "logprobs"])
            self.assertEqual([sample[name] for name in ("prompt", "row", "index", "seed")], ["12+34=", 0, number, 3])
            self.assertEqual(sample["token_count"], len(sample["tokens"]))
            self.assertAlmostEqual(sample["logprob_sum"], sum(sample["logprobs"]), places=5)
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


class SampleFile(Case):
    """`--prompts`: all prompts of a file."""

    PROMPTS = [f"{a}+{b}=" for a in range(3, 60, 7) for b in (4, 38)]
    WORDS = ("--max-new-tokens", "6", "--temperature", "1.5", "--seed", "7")

    def prompts(self, name="prompts.jsonl", field="prompt"):
        return self.write(name, lines_of({field: prompt, "label": "?"} for prompt in self.PROMPTS))

    def sample(self, *words, **options):
        done = run("model", "sample", MODEL, *words, **options)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def test_each_prompt_gets_its_samples_in_order(self):
        out = self.folder / "out.jsonl"
        said = self.sample("--prompts", self.prompts(), "-n", "3", "-o", out, *self.WORDS)
        self.assertEqual(said, f"3 samples each of 18 prompts: {out}\n")
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([(line["row"], line["index"]) for line in lines],
                         [(row, index) for row in range(18) for index in range(3)])
        for line in lines:
            self.assertEqual(list(line), ["prompt", "row", "index", "text", "finish", "token_count", "logprob_sum", "seed"])
            self.assertEqual((line["prompt"], line["seed"]), (self.PROMPTS[line["row"]], 7))

    def test_a_seed_gives_the_same_bytes_on_any_number_of_threads(self):
        words = ("--prompts", self.prompts(), "-n", "5", "--tokens", *self.WORDS)
        one = self.sample(*words, preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        self.assertEqual(one, self.sample(*words))
        self.assertNotEqual(one, self.sample(*words[:-1], "8"))

    def test_a_prompt_is_sampled_alike_alone_and_in_a_file(self):
        in_file = [json.loads(line) for line in self.sample("--prompts", self.prompts(), "-n", "2", *self.WORDS).splitlines()]
        alone = [json.loads(line)
                 for line in self.sample("--prompt", self.PROMPTS[0], "-n", "2", "--json", *self.WORDS).splitlines()]
        self.assertEqual(in_file[:2], alone)

    def test_the_field_may_be_named_and_be_a_conversation(self):
        plain = self.sample("--prompts", self.prompts(), *self.WORDS)
        named = self.sample("--prompts", self.prompts("named.jsonl", "question"), "--prompt-field", "question", *self.WORDS)
        self.assertEqual(named, plain)
        model, file = (self.folder / "model",
                       self.write("chats.jsonl", lines_of({"prompt": [{"role": "user", "content": p}]} for p in self.PROMPTS)))
        shutil.copytree(MODEL, model)
        refused = run("model", "sample", model, "--prompts", file)
        self.assert_refused(refused, "chats.jsonl:1:", "no chat template")
        (model / "chat_template.jinja").write_text("{{ messages[0].content }}")
        chats = run("model", "sample", model, "--prompts", file, *self.WORDS)
        texts = [[json.loads(line)["text"] for line in output.splitlines()] for output in (chats.stdout, plain)]
        self.assertEqual(texts[0], texts[1], chats.stderr)

    def test_prompts_without_room_are_all_named_before_anything_is_sampled(self):
        file, out = (self.write("long.jsonl", lines_of({"prompt": prompt} for prompt in ("1+1=", "1" * 63, "2", "3" * 90))),
                     self.folder / "out.jsonl")
        done = run("model", "sample", MODEL, "--prompts", file, "-o", out, "--max-new-tokens", "4")
        self.assert_refused(done, "long.jsonl:2:", "long.jsonl:4:", "64 positions", "--max-new-tokens", problems=2)
        self.assertFalse(out.exists())

    def test_what_makes_no_sense_is_refused(self):
        file = self.prompts()
        self.assert_refused(run("model", "sample", MODEL, "--prompts", file, "-o", file), "is the file of the prompts")
        self.assertEqual(len(file.read_text().splitlines()), 18)
        old = self.write("old.jsonl", "samples of another day\n")
        self.assert_refused(run("model", "sample", MODEL, "--prompts", file, "-o", old), "old.jsonl is there already")
        self.assertEqual(old.read_text(), "samples of another day\n")
        self.assert_refused(run("model", "sample", MODEL, "--prompts", file, "--prompt-field", "question"), "question",
                            "--prompt-field")
        for words in (("--prompts", file, "--prompt", "1"), ("-o", "x"), ("--prompt-field", "x")):
            self.assertEqual(run("model", "sample", MODEL, *words).returncode, WRONG_USAGE)


class Info(Case):
    def test_json_holds_what_the_config_and_the_files_say(self):
        done = run("model", "info", MODEL, "--json")
        self.assertEqual(done.returncode, DONE, done.stderr)
        info, config = json.loads(done.stdout), json.loads((MODEL / "config.json").read_text())
        tensors = read_safetensors(MODEL / "model.safetensors")
        self.assertEqual(info["family"], "llama")
        self.assertEqual(info["layers"], config["num_hidden_layers"])
        self.assertEqual(info["vocab_size"], config["vocab_size"])
        self.assertEqual(info["tied_embeddings"], config["tie_word_embeddings"])
        self.assertEqual(info["parameters"], sum(math.prod(shape) for _, shape, _ in tensors.values()))
        self.assertEqual(info["stored"]["bytes"], sum(len(content) for _, _, content in tensors.values()))
        self.assertEqual(info["stored"]["dtypes"], sorted({dtype for dtype, _, _ in tensors.values()}))
        self.assertIsNone(info["stored"]["misfit"])
        self.assertFalse(info["chat_template"])

    def test_text_tells_windows_and_stretched_positions(self):
        gemma = run("model", "info", GOLDEN / "gemma2").stdout
        self.assertIn("5 tokens in layer 0\n", gemma)
        self.assertIn("48, tied embeddings", gemma)
        phi3 = run("model", "info", GOLDEN / "phi3_longrope").stdout
        self.assertIn("longrope, theta 10000.0, 6 of 8 dimensions, stretched by 8.0 from 8 positions", phi3)
        gemma3 = run("model", "info", GOLDEN / "gemma3_linear").stdout
        self.assertIn("linear, theta 100.0, stretched by 4.0; in 2 layers default, theta 50.0\n", gemma3)
        self.assertIn("default, theta 2000000.0; none in 1 layer\n", run("model", "info", GOLDEN / "smollm3").stdout)
        self.assertIn("none: learned positions", run("model", "info", GOLDEN / "gpt2").stdout)

    def test_experts_are_told_with_the_parameters_that_a_token_goes_through(self):
        folder = GOLDEN / "qwen2_moe"
        self.assertIn("2 of 6 for each token, intermediate size 16; a shared one of 20; ", run("model", "info", folder).stdout)
        info = json.loads(run("model", "info", folder, "--json").stdout)
        self.assertEqual(info["parameters"] - info["active_parameters"], 2 * 4 * 3 * 16 * 32)  # layers, experts, matrices
        self.assertNotIn("experts", run("model", "info", MODEL).stdout)

    def test_layers_that_have_an_mlp_instead_of_experts_are_told(self):
        folder = GOLDEN / "qwen2_moe_mixed"
        self.assertIn("; an MLP of 24 instead in layers 0, 2; ", run("model", "info", folder).stdout)
        info = json.loads(run("model", "info", folder, "--json").stdout)
        self.assertEqual(info["experts"]["dense_layers"], [0, 2])
        self.assertEqual(info["parameters"] - info["active_parameters"], 2 * 4 * 3 * 16 * 32)  # mixtures, experts, matrices

    def test_a_folder_without_weights_has_none(self):
        folder = ROOT / "pipelines/models/tiny-random"
        self.assertEqual(json.loads(run("model", "info", folder, "--json").stdout)["stored"],
                         {"files": 0, "bytes": 0, "dtypes": [], "misfit": None})

    def test_a_chat_template_is_found_in_both_places(self):
        for name, content in (("chat_template.jinja", "{{ messages }}"),
                              ("tokenizer_config.json", '{"chat_template": "{{ messages }}"}')):
            with self.subTest(name):
                folder = self.folder / name.partition(".")[0]
                folder.mkdir()
                shutil.copy(MODEL / "config.json", folder)
                (folder / name).write_text(content)
                self.assertTrue(json.loads(run("model", "info", folder, "--json").stdout)["chat_template"])


class Verify(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        shutil.copytree(MODEL, self.model)
        self.tensors = read_safetensors(self.model / "model.safetensors")
        self.name = next(name for name in sorted(self.tensors) if "mlp.up" in name)

    def problems(self, change_header=lambda header: None):
        (self.model / "model.safetensors").write_bytes(safetensors(self.tensors, change_header))
        done = run("model", "verify", self.model)
        self.assertEqual(done.returncode, FAILED, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def test_good_folders_are_said_to_be(self):
        for folder in (MODEL, *sorted(path.parent for path in GOLDEN.glob("*/config.json"))):
            with self.subTest(folder.name):
                done = run("model", "verify", folder)
                self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
                self.assertEqual(len(done.stdout.splitlines()), 1)
                self.assertIn("names, shapes and values are good", done.stdout)

    def test_every_wrong_tensor_is_a_line(self):
        dtype, shape, content = self.tensors[self.name]
        self.tensors["extra"] = (dtype, shape, content)
        self.tensors["model.norm.weight"] = (dtype, shape, content)
        lines = self.problems()
        self.assertEqual(len(lines), 2)
        self.assertIn('"model.norm.weight" has shape', lines[0])
        self.assertIn('"extra" belongs to no weight', lines[1])

    def test_values_that_are_not_finite_are_counted(self):
        dtype, shape, content = self.tensors[self.name]
        value = struct.pack("<f", float("inf")) if dtype == "F32" else struct.pack("<H", 0x7F80)
        self.tensors[self.name] = (dtype, shape, value * 3 + content[3 * len(value):])
        lines = self.problems()
        self.assertEqual(len(lines), 1)
        self.assertIn(f'"{self.name}" has 3 values that are not finite', lines[0])

    def test_a_wrong_checksum_is_told(self):
        dtype, shape, _ = self.tensors[self.name]
        size = 4 if dtype == "F32" else 2
        self.tensors[self.name] = (dtype, shape, bytes(size * math.prod(shape)))
        lines = self.problems(lambda header: header.update({"__metadata__": {"crc32c/" + self.name: "00000001"}}))
        self.assertEqual(len(lines), 1)
        self.assertIn("the file says 00000001", lines[0])

    def test_a_damaged_file_is_one_line(self):
        path = self.model / "model.safetensors"
        path.write_bytes(path.read_bytes()[:-100])
        done = run("model", "verify", self.model)
        self.assertEqual(done.returncode, FAILED)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.assertIn(str(path), done.stdout)


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
                self.refuse(function, "[3]\n[3,\n" if function != "tokenize" else '"3"\n"3\n', "standard input:2:")

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

    def test_a_prompt_that_is_given_empty_is_not_read_from_standard_input(self):
        self.assert_refused(run("model", "sample", MODEL, "--prompt", "", stdin="1+1="), "the prompt has no tokens")

    def test_a_prompt_of_standard_input_has_no_end_of_its_last_line(self):
        for text, prompt in (("1+1=", "1+1="), ("1+1=\n", "1+1="), ("1+1=\r\n", "1+1="), ("1\n\n", "1\n")):
            done = run("model", "sample", MODEL, "--json", "--temperature", "0", stdin=text)
            self.assertEqual(json.loads(done.stdout)["prompt"], prompt)

    def test_a_prompt_that_is_no_utf8(self):
        for words in ((), ("--chat",)):
            done = run("model", "sample", FOLDERS[2], *words, "--prompt", b"caf\xe9".decode(errors="surrogateescape"))
            self.assert_refused(done, "the prompt is not UTF-8")

    def test_a_chat_without_a_template(self):
        done = run("model", "sample", MODEL, "--chat", "--prompt", "1+1=")
        self.assert_refused(done, "has no chat template", "chat_template.jinja")
        self.assertNotIn("--template", done.stderr)  # an option that this command has not

    def test_a_seed_below_0(self):
        self.assertEqual(run("model", "sample", MODEL, "--prompt", "1+1=", "--seed", "-1").returncode, WRONG_USAGE)

    def test_missing_folder(self):
        for function in ("tokenize", "detokenize", "logprobs", "sample"):
            with self.subTest(function):
                self.refuse(function, "[1]\n", str(self.folder / "none"), "No such file or directory",
                            folder=self.folder / "none")


if __name__ == "__main__":
    unittest.main()
