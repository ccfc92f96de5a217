"""`rlhf-run launch`: what it refuses before any rank is there. What it does with ranks is in launch_test.cpp."""

import os
import resource
import socket
import unittest

from support import DONE, PPO, SMALL, WRONG_PIPELINE, WRONG_USAGE, Case, run, sets, with_roles

IN_A_WORLD = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "n1",
              "MASTER_PORT": "2345"}


class Launch(Case):
    def test_without_roles_the_number_of_ranks_is_needed(self):
        self.assert_refused(run("launch", PPO), "the pipeline has no roles")

    def test_a_number_of_ranks_that_cannot_be_is_refused(self):
        for written in ("0", "-1", "1025", "2.5", "many"):
            with self.subTest(written):
                self.assert_refused(run("launch", f"--ranks={written}", PPO), f'"{written}" is not a whole number from 1 to 1024',
                                    code=WRONG_USAGE)

    def test_a_port_that_cannot_be_is_refused(self):
        self.assert_refused(run("launch", "--ranks", 2, "--port", 65536, PPO), '"65536" is not a whole number from 1 to 65535',
                            code=WRONG_USAGE)

    def test_a_port_in_use_is_told_before_any_rank_is_there(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            done = run("launch", "--ranks", 2, "--port", port, PPO, "--run-dir", self.folder / "run")
        self.assert_refused(done, f"error: --port {port}: port {port} is in use on this machine", "leave --port out")
        self.assertNotIn("[rank 1]", done.stderr)

    def test_a_limit_of_open_files_that_no_rank_can_do_with_is_told_before_any_rank_is_there(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        done = run("launch", "--ranks", 2, PPO, "--run-dir", self.folder / "run", preexec_fn=few)
        self.assert_refused(done, "this process may have 20 files and connections open, and rank 0 of 2 needs some 42",
                            "ulimit -n 84")
        self.assertNotIn("[rank 1]", done.stderr)

    def test_it_takes_what_run_takes(self):
        launch, alone = (run(command, "--help").stdout for command in ("launch", "run"))
        for line in alone.split("Options:\n")[1].split("\n\n")[0].splitlines():
            self.assertIn(line.split()[0], launch)

    def test_a_wrong_pipeline_is_told_once_and_leaves_nothing_behind(self):
        done = run("launch", "--ranks", 3, self.write("p.toml", "pipeline = 3\n"), "--run-dir", self.folder / "run")
        self.assert_refused(done, "p.toml:1:")
        self.assertEqual(done.stderr.count("p.toml:1:"), 1)
        self.assertFalse((self.folder / "run").exists())

    def test_wrong_data_is_told_by_rank_0_in_full(self):
        done = run("launch", "--ranks", 2, PPO, "--run-dir", self.folder / "run",
                   *sets(**{**SMALL, "nodes.generate.max_prompt_tokens": 1}))
        self.assertEqual(done.returncode, WRONG_PIPELINE, done.stderr)
        self.assertIn("\n20 problems; nothing was run\n", done.stderr)
        told = [line for line in done.stderr.splitlines() if "max_prompt_tokens of node 'generate' is 1" in line]
        self.assertEqual(len([line for line in told if not line.startswith("[rank 1] ")]), 20)
        self.assertLessEqual(len(told), 20 + 1)  # rank 1 need not come to it any more
        self.assertEqual(done.stderr.count("[rank 1]       = and 19 more problems\n"), len(told) - 20)

    def test_a_checkpoint_that_is_not_there_is_told_once(self):
        self.write("run/pipeline.toml", with_roles("grpo.toml", 1, 1))
        done = run("resume", self.folder / "run", "--from", 3)
        self.assert_refused(done, f"error: {self.folder}/run has no checkpoint 3\n      = help: it has none\n")
        self.assertNotIn("rank", done.stderr)

    def test_a_pipeline_with_more_executors_than_cores_of_a_rank_is_warned_of_once(self):
        one = {min(os.sched_getaffinity(0))}
        done = run("launch", "--ranks", 2, PPO, "--run-dir", self.folder / "run", *sets(**SMALL),
                   preexec_fn=lambda: os.sched_setaffinity(0, one))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(done.stderr.count("2 executors (cpu:1, cpu) share 1 core"), 1)

    def test_one_rank_is_a_run_alone(self):
        done = run("launch", "--ranks", 1, PPO, "--run-dir", self.folder / "run", *sets(**SMALL))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("ppo finished: 2 iterations", done.stdout)

    def test_it_is_no_rank_itself(self):
        done = run("launch", "--ranks", 2, PPO, env={**os.environ, **IN_A_WORLD})
        self.assert_refused(done, "this is already rank 1 of 4, started by torchrun or rlhf-run launch", "rlhf-run run FILE")

    def test_a_world_that_is_half_there_is_refused(self):
        done = run("launch", "--ranks", 2, PPO, env={**os.environ, "WORLD_SIZE": "4"})
        self.assert_refused(done, "WORLD_SIZE is 4, but RANK is not set")


if __name__ == "__main__":
    unittest.main()
