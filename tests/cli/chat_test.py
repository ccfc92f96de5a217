"""`rlhf-run model chat`: turns in, answers out, as a script and as a person at a terminal has them."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time
import unittest

from support import DONE, FAILED, INTERRUPTED, MODEL, PROGRAM, ROOT, Case, run, start

TEXT = ROOT / "pipelines/models/tiny-text"  # its template writes ROLE: TEXT
GREEDY = ("--temperature", "0", "--max-new-tokens", "12")


class Chat(Case):
    def chat(self, turns, *words, folder=TEXT, code=DONE):
        done = run("model", "chat", folder, *words, stdin="".join(turn + "\n" for turn in turns))
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def answers(self, turns, *words):
        return [json.loads(line) for line in self.chat(turns, "--json", *words).stdout.splitlines()]

    def first(self, prompt, *words):
        """What a single prompt gets through the template."""
        done = run("model", "sample", TEXT, "--chat", "--prompt", prompt, "--tokens", *words)
        return json.loads(done.stdout)["tokens"]

    def test_each_line_is_answered_plainly(self):
        done = self.chat(["Hello", "", "And then?"], *GREEDY)
        texts = [answer["text"] for answer in self.answers(["Hello", "And then?"], *GREEDY)]
        self.assertEqual(done.stdout, "".join(text + "\n" for text in texts))

    def test_an_answer_is_there_before_the_next_turn_is_read(self):
        with start("model", "chat", TEXT, "--json", *GREEDY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for turn in ("Hello", "And then?"):
                process.stdin.write(turn + "\n")
                process.stdin.flush()
                self.assertIn("text", json.loads(process.stdout.readline()))
            process.stdin.close()
        self.assertEqual(process.returncode, DONE)

    def test_what_was_said_is_context_and_is_not_read_again(self):
        first, second, third = self.answers(["Hello", "And then?", "Go on"], *GREEDY)
        self.assertEqual(first["tokens"], self.first("Hello", *GREEDY))
        # Of the template: the <eos> and the line's end after an answer, and what is around the next turn.
        self.assertEqual(second["context_tokens"], first["context_tokens"] + 12 + len("|\n" "user: And then?|\n" "assistant: "))
        self.assertGreaterEqual(third["reused_tokens"], second["context_tokens"] // 16 * 16)

    def test_reset_begins_anew(self):
        answers = self.answers(["Hello", "And then?", "/reset", "Hello"], *GREEDY)
        self.assertEqual(answers[2]["tokens"], answers[0]["tokens"])
        self.assertEqual(answers[2]["context_tokens"], answers[0]["context_tokens"])

    def test_exit_ends_it_and_unknown_commands_are_told(self):
        done = self.chat(["/help", "/rest", "/exit", "Hello"], *GREEDY)
        self.assertEqual(done.stdout, "")
        self.assertIn("/reset   begin a new conversation", done.stderr)
        self.assertIn("/rest is no command", done.stderr)
        self.assertEqual(len(self.chat(["/etc/hosts holds what?"], *GREEDY).stdout.splitlines()) > 0, True)

    def test_a_seed_repeats_and_turns_differ(self):
        words = ("--temperature", "2", "--max-new-tokens", "20")
        one, again, other = (self.answers(["a", "/reset", "a"], *words, "--seed", seed) for seed in ("1", "1", "2"))
        self.assertEqual(one, again)
        self.assertNotEqual(one, other)
        self.assertNotEqual(one[0]["tokens"], one[1]["tokens"])

    def test_the_system_message_is_the_beginning(self):
        plain, with_system = (self.answers(["Hello"], *GREEDY, *words)[0] for words in ((), ("--system", "Be kind.")))
        # bytes, and an <eos>
        self.assertEqual(with_system["context_tokens"] - plain["context_tokens"], len("system: Be kind.\n") + 1)

    def test_characters_are_never_cut(self):
        with start("model", "chat", TEXT, "--temperature", "3", "--max-new-tokens", "80", stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE) as process:
            process.stdin.write("a\nb\nc\n".encode())
            process.stdin.close()
            for piece in iter(lambda: os.read(process.stdout.fileno(), 1 << 20), b""):
                piece.decode("utf-8", "strict")
        self.assertEqual(process.returncode, DONE)

    def test_a_model_without_a_template_is_refused_with_what_to_do(self):
        self.assert_refused(run("model", "chat", MODEL), "has no chat template", "--template FILE", "chat_template.jinja",
                            "model sample")
        template = self.write("t.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}=")
        done = run("model", "chat", MODEL, "--template", template, "--temperature", "0", "--max-new-tokens", "3", stdin="12+34\n")
        self.assertEqual(done.stdout, run("model", "sample", MODEL, "--prompt", "12+34=", "--temperature", "0",
                                          "--max-new-tokens", "3").stdout)

    def test_adapters_without_their_model_are_refused(self):
        shutil.copytree(TEXT, self.folder / "adapter")
        (self.folder / "adapter/config.json").rename(self.folder / "adapter/adapter_config.json")
        self.assert_refused(run("model", "chat", self.folder / "adapter"), "adapters without their model")

    def test_a_line_that_is_no_utf8_is_told_and_the_conversation_goes_on(self):
        done = subprocess.run([PROGRAM, "model", "chat", str(TEXT), "--json", *GREEDY], input=b"caf\xe9\nHello\n",
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn(b"this line is not UTF-8 and was not sent", done.stderr)
        self.assertEqual(json.loads(done.stdout)["tokens"], self.first("Hello", *GREEDY))

    def test_a_system_message_that_is_no_utf8_is_refused(self):
        self.assert_refused(run("model", "chat", TEXT, "--system", b"caf\xe9".decode(errors="surrogateescape")),
                            "--system is not UTF-8")

    def test_a_template_that_writes_nothing_is_refused(self):
        template = self.write("t.jinja", "{% if messages %}{% endif %}")
        self.assert_refused(run("model", "chat", TEXT, "--template", template, stdin="Hello\n"),
                            "the chat template writes nothing")

    def test_a_full_context_is_told(self):
        done = self.chat(["Hello", "x" * 80, "/reset", "Hi"], "--context", "64", *GREEDY, code=FAILED)
        self.assertIn("there is room for 64: /reset begins a new one, --context N makes room", done.stderr)
        self.assertNotIn("internal", done.stderr)
        done = self.chat(["Hello"], "--context", "32", "--temperature", "0")
        self.assertIn("(the conversation fills all 32 tokens: /reset", done.stderr)


class Interrupted(Case):
    def endless(self):
        """The model, without a token that ends its answers, and with room for long ones."""
        folder = self.folder / "endless"
        shutil.copytree(TEXT, folder)
        for name, key in (("config.json", "eos_token_id"), ("tokenizer_config.json", "eos_token")):
            config = json.loads((folder / name).read_text()) | {"max_position_embeddings": 60000}
            del config[key]
            (folder / name).write_text(json.dumps(config))
        return folder

    def start_talking(self):
        template = self.write("plain.jinja", "{% for m in messages %}{{ m.content }}\n{% endfor %}")
        process = start("model", "chat", self.endless(), "--template", template, "--context", "60000", "--max-new-tokens",
                        "50000", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        self.assertTrue(os.read(process.stdout.fileno(), 1))  # it speaks
        return process

    def test_the_first_interrupt_ends_the_answer_alone(self):
        process = self.start_talking()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(b"/help\n", timeout=60)  # which closes what is open
        self.assertEqual(process.returncode, DONE, err)
        self.assertIn(b"(stopped)", err)
        self.assertIn(b"/reset   begin", err)
        self.assertTrue(out.endswith(b"\n"))

    def test_a_terminal_shows_a_prompt_and_ctrl_d_leaves(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "dumb"
            os.chdir(ROOT)
            os.execv(PROGRAM, [PROGRAM, "model", "chat", str(TEXT), *GREEDY])
        self.addCleanup(os.close, terminal)

        def read_until(mark, seconds=60):
            seen, end = b"", time.monotonic() + seconds
            while mark not in seen:
                self.assertTrue(select.select([terminal], [], [], max(0, end - time.monotonic()))[0], f"no {mark!r} in {seen!r}")
                seen += os.read(terminal, 4096)
            return seen

        read_until(b"\n> ")
        os.write(terminal, b"/help\n")
        self.assertIn(b"/reset   begin a new conversation", read_until(b"\n> "))
        os.write(terminal, b"\x04")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), DONE)

    def test_an_interrupt_at_the_prompt_leaves(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execv(PROGRAM, [PROGRAM, "model", "chat", str(TEXT)])
        self.addCleanup(os.close, terminal)
        seen = b""
        while b"\n> " not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        self.assertIn(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), (-signal.SIGINT, INTERRUPTED))


if __name__ == "__main__":
    unittest.main()
