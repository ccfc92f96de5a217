"""`rlhf-run tools`: what the servers of a pipeline have, as chat templates show it; and what a run says of servers that do not
start."""

import json
import shutil
import unittest

from support import DONE, FAILED, ROOT, Case, run

EXAMPLE = ROOT / "examples/10_tools"
WRONG = 78


class Tools(Case):
    def servers(self, command, start_seconds=60.0):
        server = f"{{ command = {json.dumps(command)} }}"
        return f'nodes.generate.environment={{ type = "tools", start_seconds = {start_seconds}, servers = [{server}] }}'

    def test_what_the_servers_have_is_a_list_of_schemas(self):
        done = run("tools", EXAMPLE / "tools.toml")
        self.assertEqual(done.returncode, DONE, done.stderr)
        [tool] = json.loads(done.stdout)
        self.assertEqual(tool["type"], "function")
        self.assertEqual(tool["function"]["name"], "add")
        self.assertEqual(tool["function"]["parameters"]["required"], ["a", "b"])

    def test_the_file_may_be_one_that_the_pipeline_already_names(self):
        shutil.copytree(EXAMPLE, self.folder / "tools")
        pipeline = self.folder / "tools/tools.toml"
        text = pipeline.read_text().replace("../../pipelines/data", str(ROOT / "pipelines/data"))
        pipeline.write_text(text.replace("chat = true\n", "chat = true\ntools = \"tools.json\"\n"))
        missing = run("validate", pipeline)
        self.assertEqual(missing.returncode, WRONG)
        self.assertIn("there is no file", missing.stderr)
        self.assertIn("tools.toml:22:9", missing.stderr)
        self.assertIn("rlhf-run tools", missing.stderr)
        done = run("tools", pipeline, "-o", self.folder / "tools/tools.json")
        self.assertEqual(done.returncode, DONE, done.stderr)
        valid = run("validate", pipeline)
        self.assertEqual(valid.returncode, DONE, valid.stderr)

    def test_a_pipeline_without_tools_has_none(self):
        done = run("tools", ROOT / "pipelines/ppo.toml")
        self.assertEqual(done.returncode, WRONG)
        self.assertIn("no node whose environment has tools", done.stderr)

    def test_a_server_that_does_not_start_is_an_error_at_the_line_of_its_node(self):
        for command, seconds, what in ((["sleep", "1000"], 1.0, "it did not answer in time"),
                                       (["echo", "hello"], 60.0, "no JSON-RPC message: \"hello\"")):
            done = run("tools", EXAMPLE / "tools.toml", "--set", self.servers(command, seconds))
            self.assertEqual(done.returncode, WRONG, done.stderr)
            self.assertIn(f'tool server "{" ".join(command)}"', done.stderr)
            self.assertIn(what, done.stderr)
        refused = self.servers(["python3", "-c", "raise SystemExit('no numbers')"])
        done = run("run", EXAMPLE / "tools.toml", "--run-dir", self.folder / "run", "--set", refused)
        self.assertEqual(done.returncode, WRONG, done.stderr)
        self.assertIn("tools.toml:25:1: error: tool server \"python3 -c", done.stderr)
        self.assertIn("it exited with code 1", done.stderr)
        self.assertIn("its stderr ends with: no numbers", done.stderr)

    def test_a_server_that_answers_nothing_any_more_ends_the_run(self):
        broken = self.folder / "server.py"
        broken.write_text((EXAMPLE / "calculator_server.py").read_text().replace("return call(", "sys.exit(3)  # ("))
        servers = self.servers(["python3", "-S", str(broken)]).replace("start_seconds", "most_breakdowns = 6, start_seconds")
        done = run("run", EXAMPLE / "tools.toml", "--run-dir", self.folder / "run", "--set", servers)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("the environment failed on turn ", done.stderr)
        self.assertIn("it exited with code 3; that was its breakdown number 6 in a row", done.stderr)
        self.assertIn("node 'generate', iteration 0, turn 0 of sample ", done.stderr)
        self.assertEqual(done.stderr.count(" without an answer so far"), 3)  # the 1st, the 2nd and the 4th


if __name__ == "__main__":
    unittest.main()
