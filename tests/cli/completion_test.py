"""`rlhf-run completion SHELL`: what real shells make of the scripts. bash is there wherever this builds; zsh and fish may be
missing."""

import functools
import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from support import DONE, WRONG_USAGE, Case, run

# In a list of subcommands or options of --help.
NAME = re.compile(r"(?m)^  (?:-\w,)?(--[\w-]+|[a-z]+)\b")


@functools.cache
def script(shell):
    done = run("completion", shell)
    assert done.returncode == DONE, done.stderr
    return done.stdout


@functools.cache
def names_in_help(*command):
    """Subcommands and options as --help lists them."""
    text = run(*command, "--help").stdout
    return sorted({name for part in re.findall(r"(?ms)^(?:Options|Subcommands):\n(.*?)\n\n", text + "\n\n")
                   for name in NAME.findall(part)})


# A start of the program takes half a second: not all of them.
COMMANDS = (("run",), ("graph",), ("checkpoints", "prune"), ("model", "sample"), ("try",))


class Terminal:
    """A shell on a terminal, to which a person types."""

    def __init__(self, words, folder, setup):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", PS1="$ ", HOME=str(folder), INPUTRC="/dev/null")
            os.execvp(words[0], words)
        self.enter(setup + "\nprintf 'REA%s\\n' DY\n")
        self.read_until("READY")

    def enter(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, mark, seconds=30):
        seen, end = "", time.monotonic() + seconds
        while mark not in seen:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no {mark!r} in {seen!r}")
            seen += os.read(self.terminal, 4096).decode(errors="replace")
        return seen

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def completed_on_a_terminal(words, folder, setup, line):
    """The arguments after `line` was typed, then Tab, then Enter."""
    show = "rlhf-run() { printf 'GOT'; printf '<%s>' \"$@\"; printf '%s\\n' END; }\n"
    terminal = Terminal(words, folder, show + setup)
    try:
        terminal.enter(line + "\t")
        time.sleep(0.3)  # a shell may take keys that come at once for pasted text
        terminal.enter("\n")
        return re.findall(r"<([^>]*)>", re.search(r"GOT(<.*>)END", terminal.read_until(">END")).group(1))
    finally:
        terminal.close()


class Bash(Case):
    def setUp(self):
        super().setUp()
        self.script = self.write("script.bash", script("bash"))

    def offered(self, *words):
        """What bash offers for the last of `words`."""
        body = f'source "{self.script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rlhf_run; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "--norc", "-c", body, "bash", "rlhf-run", *words], capture_output=True, text=True,
                              timeout=60, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(done.stdout.split())

    def test_a_command_offers_the_options_of_its_help(self):
        for command in [(), *COMMANDS]:
            with self.subTest(command):
                self.assertEqual([name for name in self.offered(*command, "--")],
                                 [name for name in names_in_help(*command) if name.startswith("--")])

    def test_the_first_word_is_a_subcommand_or_a_pipeline(self):
        self.write("mine.toml", "")
        self.write("notes.txt", "")
        subcommands = [name for name in names_in_help() if not name.startswith("--")]
        self.assertEqual(self.offered(""), sorted([*subcommands, "mine.toml"]))
        self.assertEqual(self.offered("vali"), ["validate"])
        self.assertEqual(self.offered("mine.toml", "--acc"), ["--accept-changes"])

    def test_subcommands_of_a_subcommand(self):
        self.assertEqual(self.offered("model", "to"), ["tokenize"])
        self.assertEqual(self.offered("checkpoints", "p"), ["prune"])

    def test_a_value_that_is_one_of_a_few(self):
        self.assertEqual(self.offered("graph", "p.toml", "--format", ""), ["dot", "mermaid"])
        self.assertEqual(self.offered("model", "sample", "folder", "--dtype", "b"), ["bfloat16"])
        self.assertEqual(self.offered("completion", ""), ["bash", "fish", "zsh"])

    def test_files_and_folders_where_they_are_expected(self):
        self.write("my run/metrics.jsonl", "")
        self.write("p.toml", "")
        self.write("plugin.so", "")
        self.assertEqual(self.offered("top", "my"), ["my", "run"])  # one word with a blank in it
        self.assertEqual(self.offered("top", "p"), [])
        self.assertEqual(self.offered("validate", "p"), ["p.toml"])
        self.assertEqual(self.offered("nodes", "--plugin", "pl"), ["plugin.so"])
        self.assertEqual(self.offered("run", "p.toml", "--run-dir", "m"), ["my", "run"])

    def test_types_where_they_are_expected(self):
        self.assertIn("gae", self.offered("describe", ""))
        self.assertIn("preset:verl", self.offered("describe", "--plugin", "x.so", ""))
        self.assertNotIn("preset:verl", self.offered("try", ""))
        self.assertEqual(self.offered("try", "gae", ""), [])

    def test_what_is_offered_for_a_type_is_what_the_command_takes(self):
        for name in self.offered("describe", "preset:t") + self.offered("describe", "o"):
            self.assertEqual(run("describe", name).returncode, DONE, name)
        for name in self.offered("try", "a"):
            self.assertNotIn("is called", run("try", name).stderr)

    def on_a_terminal(self, line):
        self.write("my run/metrics.jsonl", "")
        return completed_on_a_terminal(["bash", "--norc", "--noprofile", "-i"], self.folder, f'source "{self.script}"', line)

    def test_a_name_with_a_colon_is_completed_as_it_is_typed(self):
        self.assertEqual(self.on_a_terminal("rlhf-run describe objective:ppo_cl"), ["describe", "objective:ppo_clip"])

    def test_a_value_after_an_equals_sign(self):
        self.assertEqual(self.on_a_terminal("rlhf-run graph p.toml --format=merm"), ["graph", "p.toml", "--format=mermaid"])

    def test_a_folder_with_a_blank_stays_one_word(self):
        self.assertEqual(self.on_a_terminal("rlhf-run top my"), ["top", "my run/"])


class OtherShells(Case):
    def need(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"no {shell}")
        return self.write(f"script.{shell}", script(shell))

    def test_zsh(self):
        path = self.need("zsh")
        self.write("p.toml", "")
        self.write("only.txt", "")
        setup = f'autoload -U compinit; compinit -u; source "{path}"'
        for line, words in (("vali", ["validate"]), ("model tok", ["model", "tokenize"]),
                            ("run --accept", ["run", "--accept-changes"]),
                            ("graph p.toml --format merm", ["graph", "p.toml", "--format", "mermaid"]),
                            ("graph p.toml --format=merm", ["graph", "p.toml", "--format=mermaid"]),
                            ("describe objective:ppo_cl", ["describe", "objective:ppo_clip"]), ("plan ", ["plan", "p.toml"])):
            with self.subTest(line):
                self.assertEqual(completed_on_a_terminal(["zsh", "-f", "-i"], self.folder, setup, "rlhf-run " + line), words)

    def test_fish(self):
        path = self.need("fish")
        self.write("p.toml", "")
        self.write("runs/metrics.jsonl", "")
        for line, words in (("vali", ["validate"]), ("model tok", ["tokenize"]), ("run --accept", ["--accept-changes"]),
                            ("graph p.toml --format ", ["dot", "mermaid"]), ("graph p.toml --format=merm", ["--format=mermaid"]),
                            ("describe objective:ppo_cl", ["objective:ppo_clip"]), ("plan p", ["p.toml"]), ("top r", ["runs/"]),
                            ("p.toml --acc", ["--accept-changes"])):
            with self.subTest(line):
                done = subprocess.run(["fish", "--no-config", "-c", f'source "{path}"; complete -C "rlhf-run {line}"'],
                                      capture_output=True, text=True, timeout=60, cwd=self.folder,
                                      env={**os.environ, "HOME": str(self.folder)})
                self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], words, done.stderr)


class Scripts(Case):
    def test_an_unknown_shell_is_refused(self):
        self.assert_refused(run("completion", "tcsh"), '"tcsh"', "bash, zsh, fish", code=WRONG_USAGE)

    def test_every_script_knows_the_commands_and_their_options(self):
        for shell in ("bash", "zsh", "fish"):
            for command in [(), *COMMANDS]:
                for name in names_in_help(*command):
                    with self.subTest(shell=shell, command=command, name=name):
                        self.assertIn(name.removeprefix("--"), script(shell))


if __name__ == "__main__":
    unittest.main()
