"""The command line: what is wrong with it is said on stderr with exit code 64, whatever stands in the pipeline."""

import unittest

from support import DONE, PPO, WRONG_USAGE, Case, run


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

    def test_unknown_option(self):
        self.refuse("run", PPO, "--frob", says=["--frob"])

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

    def test_unknown_function_of_model(self):
        self.refuse("model", "tokenise", "folder")

    def test_help_and_version(self):
        help_text = run("--help")
        self.assertEqual(help_text.returncode, DONE)
        for command in ("run", "validate", "plan", "graph", "nodes", "describe", "try", "model"):
            self.assertRegex(help_text.stdout, rf"(?m)^  {command} ")
        version = run("--version")
        self.assertEqual(version.returncode, DONE)
        self.assertRegex(version.stdout, r"^sluice \d+\.\d+\.\d+\n$")

    def test_a_file_alone_is_run(self):
        done = run(self.write("p.toml", "pipeline = 3\n"))
        self.assertEqual(done.returncode, 78)
        self.assertIn("p.toml:1:", done.stderr)


if __name__ == "__main__":
    unittest.main()
