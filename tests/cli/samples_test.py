"""`rlhf-run samples`: what is shown of the samples that a run has recorded, in which order, and what is said where something was
not."""

import json
import re
import unittest

from support import DONE, MODEL, WRONG_USAGE, Case, on_terminal, run

# The tokens of "12+34=" and of what was sampled, of the shipped model, in the order of its vocabulary.
VOCABULARY = json.loads((MODEL / "tokenizer.json").read_text())["model"]["vocab"]


def ids(text):
    return [VOCABULARY[one] for one in text]


def sample(iteration, group, number, prompt, response, score, **fields):
    return ({"iteration": iteration, "group": group, "sample": number, "prompt": prompt, "response": response, "score": score} |
            fields)


ROWS = [sample(0, 0, 0, "1+1=", "3", 0.0), sample(0, 0, 1, "1+1=", "2", 1.0), sample(10, 0, 0, "12+34=", "46", 1.0),
        sample(10, 0, 1, "12+34=", "4\n6\x1b[31m", 0.25), sample(10, 1, 0, "5+6=", "1", -0.5),
        sample(10, 1, 1, "5+6=", "111", 0.125)]


class Samples(Case):
    def made_run(self, rows=ROWS, fields=("prompt", "response", "score"), more=""):
        folder = self.folder / "run"
        folder.mkdir(exist_ok=True)
        (folder / "pipeline.toml").write_text(f'[models.actor]\ncheckpoint = "{MODEL}"\n[nodes.texts]\ntype = "write_jsonl"\n'
                                              f'fields = {json.dumps(list(fields))}\nevery = 10\n{more}')
        (folder / "samples.jsonl").write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in rows))
        return folder

    def shown(self, *words):
        done = run("samples", *words)
        self.assertEqual((done.returncode, done.stderr), (DONE, ""), done.stdout)
        return done.stdout

    def responses(self, *words):
        return [json.loads(line)["response"] for line in self.shown(*words, "--format", "json").splitlines()]

    def coloured_run(self, **numbers):
        fields = {name: values for name, values in numbers.items()}
        return self.made_run([sample(0, 0, 0, "12+34=", "46", 1.0, tokens=ids("12+34=46"), **fields)],
                             fields=("prompt", "response", "score", "tokens", *fields))


class Shows(Samples):
    def test_the_latest_iteration_in_plain_text(self):
        self.assert_is_golden("samples/latest.txt", self.shown(self.made_run()), {self.folder: "FOLDER"})

    def test_the_best_and_the_worst(self):
        folder = self.made_run()
        self.assert_is_golden("samples/worst.txt", self.shown(folder, "--worst", "2"), {self.folder: "FOLDER"})
        self.assertEqual(self.responses(folder, "--best", "2"), ["46", "4\n6\x1b[31m"])
        self.assertEqual(self.responses(folder, "--best", "1", "--sort", "length"), ["4\n6\x1b[31m"])
        self.assertEqual(self.responses(folder, "--best", "3", "--iteration", "all"), ["2", "46", "4\n6\x1b[31m"])

    def test_one_iteration_or_all(self):
        folder = self.made_run()
        self.assertEqual(self.responses(folder, "--iteration", "0"), ["3", "2"])
        self.assertEqual(len(self.responses(folder, "--iteration", "all")), 6)

    def test_the_highest_come_first_and_what_has_no_number_last(self):
        folder = self.made_run([*ROWS, sample(10, 2, 0, "7+8=", "15", "nan")])
        self.assertEqual(self.responses(folder, "--sort", "score"), ["46", "4\n6\x1b[31m", "111", "1", "15"])

    def test_the_length_is_in_tokens_where_they_were_recorded(self):
        rows = [sample(0, 0, 0, "1+1=", "two", 0.0, advantages=[1.0]), sample(0, 0, 1, "1+1=", "2", 1.0, advantages=[0.5, -1.0])]
        folder = self.made_run(rows)
        self.assertEqual(self.responses(folder, "--sort", "length"), ["2", "two"])
        self.assertIn("   length 2 tokens\n", self.shown(folder))
        self.assertEqual(self.responses(folder, "--sort", "advantages"), ["two", "2"])  # by their means

    def test_prompts_are_searched(self):
        folder = self.made_run([sample(0, 0, 0, "How MANY?", "a", 0.0), sample(0, 1, 0, "How much?", "b", 0.0)])
        self.assertEqual(self.responses(folder, "--prompt", "many"), ["a"])
        self.assertEqual(self.shown(folder, "--prompt", "few"),
                         "node 'texts', iteration 0: 0 of 0 samples with \"few\" in the prompt\n")

    def test_ten_are_shown_or_as_many_as_are_asked_for(self):
        folder = self.made_run([sample(0, i, 0, "p", str(i), 0.0) for i in range(30)])
        done = run("samples", folder)
        self.assertEqual((done.stdout.count("response"), done.stderr),
                         (10, "note: --samples N shows more of them, --samples 0 all\n"))
        self.assertEqual(self.shown(folder, "--samples", "0").count("response"), 30)
        self.assertEqual(self.shown(folder, "--samples", "3").count("response"), 3)
        self.assertEqual(len(self.responses(folder)), 30)

    def test_another_node_can_be_named(self):
        folder = self.made_run(more='[nodes.others]\ntype = "write_jsonl"\npath = "others.jsonl"\n')
        (folder / "others.jsonl").write_text('{"iteration":3,"response":"other"}\n')
        self.assertEqual(self.responses(folder, "--node", "others"), ["other"])

    def test_as_json_a_sample_is_what_was_recorded(self):
        self.assertEqual(self.shown(self.made_run(), "--iteration", "0", "--format", "json"),
                         "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in ROWS[:2]))

    def test_a_line_that_is_being_written_is_left_out(self):
        folder = self.made_run()
        with open(folder / "samples.jsonl", "a") as file:
            file.write('{"iteration":20,"gro')
        self.assertEqual(len(self.responses(folder)), 4)

    def test_samples_of_a_real_run(self):
        finished = self.run_ppo(pipeline=self.saving_pipeline())
        last = [one for one in finished.samples if one["iteration"] == 1]
        self.assertEqual([json.loads(line) for line in self.shown(finished.folder, "--format", "json").splitlines()], last)


class OnATerminal(Samples):
    def test_tokens_are_coloured_by_what_was_recorded(self):
        folder = self.coloured_run(advantages=[1.0, -0.5], rollout_logprobs=[-0.01, -3.0], reference_logprobs=[-0.01, -1.0])
        for word, colours in {"advantage": [48, 210], "kl": [0, 214], "probability": [0, 214]}.items():
            code, screen = on_terminal("samples", folder, "--tokens", word)
            self.assertEqual(code, DONE)
            painted = "".join(one if colour == 0 else f"\x1b[38;5;16;48;5;{colour}m{one}\x1b[0m"
                              for one, colour in zip("46", colours))
            self.assertIn(f"response\x1b[0m  {painted}\n", screen)
            self.assertIn(f"; tokens by {'KL' if word == 'kl' else word}, ", screen)
        self.assertIn("48;5;48m4", on_terminal("samples", folder)[1])  # unasked by advantage
        self.assertNotIn("48;5;", on_terminal("samples", folder, "--tokens", "none")[1])

    def test_what_an_environment_said_between_turns_has_no_colour(self):
        folder = self.made_run([sample(0, 0, 0, "12+34=", "4=6", 1.0, tokens=ids("12+34=4=6"), action_tokens=[6, 8],
                                       advantages=[1.0, -0.5])], fields=("prompt", "response", "score", "tokens", "advantages"))
        screen = on_terminal("samples", folder)[1]
        self.assertIn("response\x1b[0m  \x1b[38;5;16;48;5;48m4\x1b[0m=\x1b[38;5;16;48;5;210m6\x1b[0m\n", screen)

    def test_no_colour_means_the_plain_text(self):
        folder = self.coloured_run(advantages=[1.0, -0.5])
        plain = self.shown(folder)
        self.assertNotIn("\x1b", plain)
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertEqual(on_terminal("samples", folder, **environment), (DONE, plain))

    def test_what_could_steer_it_is_escaped(self):
        screen = on_terminal("samples", self.made_run(), NO_COLOR="1")[1]
        self.assertIn("4\n            6\\x1b[31m\n", screen)
        self.assertNotIn("\x1b", screen)
        folder = self.made_run([sample(0, 0, 0, "p", "\u009b31m", 0.0)])
        self.assertNotIn("\x9b", on_terminal("samples", folder, "--format", "json")[1])

    def test_what_was_not_recorded_for_the_colours_is_said(self):
        screen = on_terminal("samples", self.made_run())[1]
        self.assertIn('note: tokens are not coloured: "tokens" and "advantages" are not both in nodes.texts.fields', screen)
        self.assertIn('"kl" are not both', on_terminal("samples", self.made_run(), "--tokens", "kl")[1])
        folder = self.coloured_run(advantages=[1.0, -0.5])
        (folder / "pipeline.toml").write_text((folder / "pipeline.toml").read_text().replace(str(MODEL), "/nowhere"))
        self.assertIn("the tokenizer of the run's models is not where it was", on_terminal("samples", folder)[1])


class Refuses(Samples):
    def test_what_was_not_recorded_is_named_with_the_key_that_records_it(self):
        folder = self.made_run([{"iteration": 0, "response": "a"}], fields=("response",))
        self.assert_refused(run("samples", folder, "--best", "3"), "node 'texts' has not recorded score",
                            'nodes.texts.fields = ["response", "score"]')
        self.assert_refused(run("samples", folder, "--sort", "kl"), "has not recorded kl",
                            'nodes.texts.fields = ["response", "kl"]')
        self.assert_refused(run("samples", folder, "--sort", "response"), "cannot be sorted by response", "no numbers of it")
        self.assert_refused(run("samples", folder, "--prompt", "x"), "has not recorded prompt",
                            'nodes.texts.fields = ["response", "prompt"]')
        self.assert_refused(run("samples", folder, "--iteration", "5"), "has recorded nothing of iteration 5",
                            "1 iteration from 0 to 0; nodes.texts.every says which")
        self.assert_refused(run("samples", folder, "--node", "x"), "no node of type write_jsonl is called 'x'",
                            "recorded are texts")

    def test_a_run_without_samples_says_what_records_them(self):
        folder = self.made_run([])
        self.assert_refused(run("samples", folder), "node 'texts' has recorded nothing yet")
        (folder / "samples.jsonl").unlink()
        self.assert_refused(run("samples", folder), "samples.jsonl is not in the run folder")
        (folder / "pipeline.toml").write_text("[pipeline]\n")
        self.assert_refused(run("samples", folder), "the run has recorded no samples", 'type = "write_jsonl"')
        self.assert_refused(run("samples", self.folder), f"{self.folder} is not the folder of a run")

    def test_a_line_that_is_no_sample_is_named_and_left_out(self):
        folder = self.made_run()
        for line in ("[1]", '{"iteration":10,'):
            (folder / "samples.jsonl").write_text('{"iteration":10,"response":"kept"}\n' + line + "\n")
            done = run("samples", folder)
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertIn("kept", done.stdout)
            for text in ("warning: ", "samples.jsonl, line 2", "1 line of the file left out"):
                self.assertIn(text, done.stderr)
        (folder / "samples.jsonl").write_text("[1]\n")
        self.assert_refused(run("samples", folder), "samples.jsonl, line 1 is no sample")

    def test_a_pipeline_that_is_damaged_is_named(self):
        folder = self.made_run()
        pipeline = (folder / "pipeline.toml").read_bytes()
        (folder / "pipeline.toml").write_bytes(pipeline[:20] + b"\0" + pipeline[21:])
        self.assert_refused(run("samples", folder), "pipeline.toml:")

    def test_samples_are_read_from_the_run_folder_alone(self):
        folder = self.made_run()
        (folder / "pipeline.toml").write_text('[nodes.texts]\ntype = "write_jsonl"\npath = "../secret.jsonl"\n')
        self.write("secret.jsonl", '{"iteration":0,"response":"secret"}\n')
        self.assert_refused(run("samples", folder), "is not in the run folder")

    def test_what_makes_no_sense_is_refused(self):
        folder = self.made_run()
        for words in (("--best", "1", "--worst", "1"), ("--best", "1", "--samples", "2"), ("--iteration", "last")):
            self.assert_refused(run("samples", folder, *words), re.sub("^--", "", words[0]) if words[0] != "--best" else "",
                                code=WRONG_USAGE)


if __name__ == "__main__":
    unittest.main()
