"""The command line: what is wrong with it is said on stderr with exit code 64, whatever stands in the pipeline."""

import os
import pathlib
import subprocess
import unittest

from support import DONE, PPO, PROGRAM, SMALL, WRONG_USAGE, Case, run, sets


class CommandLine(Case):
    def refuse(self, *words, says=()):
        done = run(*words)
        self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
        self.assertEqual(done.stdout, "")
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 12, done.stderr)
        self.assertGreater(len(done.stderr), 0)

    def test_no_arguments(self):
        self.refuse(says=["subcommand", "--help"])

    def test_unknown_subcommand(self):
        self.refuse("validat", PPO, says=['"validat"', "did you mean validate?"])
        self.refuse("frobnicate", says=['"frobnicate"', "--help"])
        self.refuse("grpo", says=['"grpo"', "did you mean builtin:grpo?"])

    def test_help_as_a_word_is_the_option(self):
        for words in ((), ("model",), ("checkpoints", "prune")):
            with self.subTest(words=words):
                asked, option = run("help", *words), run(*words, "--help")
                self.assertEqual((asked.returncode, asked.stderr), (DONE, ""))
                self.assertEqual(asked.stdout, option.stdout)

    def test_a_name_of_another_system_is_answered_with_ours(self):
        for name, ours in (("num_generations", "samples_per_prompt"), ("kl_coef", "kl_coefficient")):
            with self.subTest(name=name):
                self.assert_refused(run("describe", name), f'preset or table "{name}"', ours)

    def test_a_dash_is_standard_output_and_no_name(self):
        for words in (("run", PPO, "--run-dir", "-"), ("launch", "--ranks", "2", PPO, "--run-dir=-"), ("sweep", PPO, "-o", "-"),
                      ("checkpoints", "export", "run", "--to", "-")):
            with self.subTest(words=words):
                self.refuse(*words, says=["- stands for standard output, and this is a folder"])
        self.refuse("simulate", PPO, "--trace", "-", says=["--trace: standard output has what the command prints"])

    def test_unknown_option(self):
        self.refuse("run", PPO, "--frob", says=["--frob", "rlhf-run run --help"])

    def test_a_misspelt_option_is_answered_with_the_right_one(self):
        self.refuse("run", PPO, "--run-dri", "x", says=['"--run-dri"', "did you mean --run-dir?"])
        self.refuse("run", "--run-dri", "x", says=["did you mean --run-dir?"])  # also where more is missing
        self.refuse("model", "sample", "folder", "--temprature=1", says=['"--temprature"', "did you mean --temperature?"])
        self.refuse("--versoin", says=["did you mean --version?"])

    def test_a_setting_without_set_is_answered_with_it(self):
        self.refuse("trainer.epochs=3", PPO, says=["--set trainer.epochs=3"])
        self.refuse("actor.path=models/x", says=["--set actor.path=models/x"])
        self.refuse(PPO, "pipeline.iterations=3", says=["--set pipeline.iterations=3"])
        self.refuse("model", "tokenize", "models/x", "1+1=", says=["rlhf-run model tokenize --help"])

    def test_every_command_has_examples(self):
        for words in ((), ("run",), ("checkpoints",), ("checkpoints", "export"), ("model",), ("model", "sample")):
            with self.subTest(words=words):
                shown = run(*words, "--help").stdout
                self.assertIn("examples" if not words else "Examples:\n  ", shown)
                for raw in ("FLOAT", "UINT", " INT"):
                    self.assertNotIn(raw, shown)

    def test_an_option_of_another_command_is_named_there(self):
        self.refuse("validate", PPO, "--run-dir", "x", says=["rlhf-run validate has no option", "rlhf-run run has it"])

    def test_a_value_that_is_not_one_of_a_few_is_answered_with_the_nearest(self):
        self.refuse("graph", PPO, "--format", "mermiad", says=["dot, mermaid", "did you mean mermaid?"])

    def test_missing_pipeline(self):
        for command in ("run", "validate", "plan", "graph"):
            self.refuse(command, says=["pipeline"])

    def test_set_without_a_value(self):
        self.refuse("validate", PPO, "--set", says=["--set"])

    def test_unknown_format(self):
        self.refuse("graph", PPO, "--format", "svg", says=["dot", "mermaid"])
        self.refuse("plan", PPO, "--format", "yaml", says=["text", "json"])

    def test_wrong_numbers_of_sample(self):
        self.refuse("model", "sample", "folder", "--temperature", "-1", says=["--temperature"])
        self.refuse("model", "sample", "folder", "--samples", "0", says=["--samples"])
        self.refuse("model", "sample", "folder", "--top-p", "1.5", says=["--top-p"])
        self.refuse("model", "sample", "folder", "--max-new-tokens", "many", says=["--max-new-tokens"])

    def test_what_is_no_number_is_said_as_it_is(self):
        for option, wrong in (("--seed", "1e3"), ("--seed", "99999999999999999999"), ("--top-k", "2.5"),
                              ("--max-new-tokens", "1e9")):
            with self.subTest(option=option, wrong=wrong):
                self.refuse("model", "sample", "x", option, wrong, says=[f'{option}: "{wrong}" is not a whole number'])
        self.refuse("model", "sample", "x", "--presence-penalty", "much", says=['"much" is not a number'])
        for wrong in ("abc", "0", "-1", "2.5", "99999999999"):
            self.refuse("run", PPO, f"--show-samples={wrong}",
                        says=[f'--show-samples: "{wrong}" is not a whole number from 1 to'])
        self.refuse("simulate", PPO, "--iterations", "1e9", says=['"1e9" is not a whole number'])

    def test_a_variable_of_the_shell_that_is_not_set_names_no_file(self):
        self.refuse("run", PPO, "--run-dir", "", says=["--run-dir: an empty text names no file and no folder"])
        self.refuse("resume", "", says=["an empty text names no file and no folder"])

    def test_the_home_folder_is_meant_also_where_no_shell_says_so(self):
        (self.folder / "p.toml").write_text('extends = "builtin:grpo"\n')
        home = {"HOME": str(self.folder)}
        done = self.run_in_folder("schema", "--output=~/s.json", **home)
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))
        self.assertEqual(self.run_in_folder("validate", "~/p.toml", **home).returncode, DONE)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["p.toml", "s.json"])

    def test_unknown_function_of_model(self):
        self.refuse("model", "tokenise", "folder", says=["did you mean tokenize?"])

    def test_help_and_version(self):
        help_text = run("--help")
        self.assertEqual(help_text.returncode, DONE)
        for command in ("run", "validate", "plan", "graph", "nodes", "describe", "try", "model"):
            self.assertRegex(help_text.stdout, rf"(?m)^  {command} ")
        version = run("--version")
        self.assertEqual(version.returncode, DONE)
        self.assertRegex(version.stdout, r"^sluice \d+\.\d+\.\d+\n$")

    def test_the_help_of_a_subcommand_has_examples_that_are_right(self):
        for command in (("run",), ("validate",), ("top",), ("try",), ("model", "sample"), ("checkpoints", "prune"),
                        ("completion",)):
            with self.subTest(command):
                examples = run(*command, "--help").stdout.split("Examples:\n")[1]
                self.assertIn("rlhf-run " + " ".join(command), examples)

    def test_yaml_is_recognised(self):
        for name in ("grpo.yaml", "grpo.yml"):
            done = run(self.write(name, "# a pipeline\npipeline:\n  name: a b\n  steps: 10\n  lora: [q, v]\n"))
            self.assert_refused(done, f"{name}:2:1: error: this is YAML, but a pipeline is written in TOML",
                                '[pipeline]\n          name = "a b"\n          steps = 10\n          lora = ["q", "v"]\n')

    def test_yaml_that_is_a_list_is_recognised(self):
        self.assert_refused(run(self.write("p.yml", "- name: a\n- name: b\n")), "p.yml:1:1: error: this is YAML")

    def test_a_file_alone_is_run(self):
        done = run(self.write("p.toml", "pipeline = 3\n"))
        self.assertEqual(done.returncode, 78)
        self.assertIn("p.toml:1:", done.stderr)


class Surroundings(Case):
    def test_help_that_cannot_be_written_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output cannot be written", done.stderr)

    def test_a_current_folder_that_is_gone_is_told(self):
        gone = self.folder / "gone"
        gone.mkdir()
        done = subprocess.run(["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" nodes', "sh", gone, PROGRAM], capture_output=True,
                              text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "error: the current folder is gone\n      = help: cd to one that exists\n")

    def test_paths_that_are_not_utf8_are_refused_before_a_run(self):
        odd = os.fsencode(self.folder) + b"/w\xff"
        os.mkdir(odd)
        self.assert_refused(run(PPO, "--run-dir", os.fsdecode(odd + b"/run"), *sets(**SMALL)), "its path is not UTF-8")
        data = os.fsdecode(odd + b"/rows.jsonl")
        pathlib.Path(data).write_text('{"prompt": "1+1=", "label": "2"}\n')
        done = subprocess.run([PROGRAM, "validate", PPO, "--set", "nodes.prompts.path=rows.jsonl"], cwd=odd, capture_output=True,
                              timeout=60)
        self.assertEqual(done.returncode, 78)
        self.assertIn(b"is not UTF-8", done.stderr)
        self.assertEqual(os.listdir(odd), [b"rows.jsonl"])


if __name__ == "__main__":
    unittest.main()
