"""simulate: by an estimate, by what a run measured, and with other settings beside it."""

import json
import re
import signal
import unittest

from support import DONE, PPO, ROOT, WRONG_PIPELINE, WRONG_USAGE, SMALL, Case, on_terminal, run, sets


def whole(executor):
    """What an executor's time is split into."""
    return sum(executor[key]
               for key in ("busy_seconds", "gap_seconds", "no_credit_seconds", "no_weights_seconds", "no_input_seconds"))


class SimulateCase(Case):
    def simulate(self, *words, expect=DONE, **overrides):
        done = run("simulate", PPO, *words, *sets(**{**SMALL, **overrides}))
        self.assertEqual(done.returncode, expect, done.stderr + done.stdout)
        return done.stdout

    def simulated(self, *words, **overrides):
        """The variants of the JSON output."""
        return json.loads(self.simulate("--format", "json", *words, **overrides))


class Estimate(SimulateCase):
    def test_says_that_it_is_one_and_how_to_do_better(self):
        text = self.simulate()
        self.assertTrue(text.startswith("ppo: 2 iterations would take "), text)
        self.assertIn("an estimate: 20 billion operations a second for each core", text)
        self.assertIn("--costs RUN", text)

    def test_every_executor_and_every_part_of_its_time_is_told(self):
        result = self.simulated()
        self.assertTrue(result["estimated"])
        (variant,) = result["variants"]
        self.assertEqual([executor["name"] for executor in variant["executors"]], ["cpu:1", "cpu"])
        for executor in variant["executors"]:
            self.assertAlmostEqual(whole(executor), variant["seconds"])
        self.assertEqual(len(variant["iteration_seconds"]), 2)
        self.assertEqual(len(variant["tokens_in_flight"]), 60)
        self.assertLessEqual(max(variant["tokens_in_flight"]), variant["tokens_in_flight_peak"])
        self.assertLessEqual(variant["tokens_in_flight_peak"], variant["budget"])
        self.assertIn("train", [node["name"] for node in variant["nodes"]])
        self.assertNotIn("prompts", [node["name"] for node in variant["nodes"]])  # part of the rollout's time

    def test_is_the_same_every_time(self):
        self.assertEqual(self.simulated("--what-if", "schedule.policy_lag=1"),
                         self.simulated("--what-if", "schedule.policy_lag=1"))

    def test_twice_the_operations_a_second_take_half_the_time(self):
        slow, fast = (self.simulated("--gflops", speed)["variants"][0]["seconds"] for speed in ("1", "2"))
        self.assertAlmostEqual(slow, 2 * fast, delta=1e-3 * slow)

    def test_a_long_one_shows_on_a_terminal_how_far_it_is(self):
        line = re.compile(r"\x1b\[1msimulating ppo  \x1b.*#*-+.* %  about .* left   iteration \d+/1000000000$")

        def stop_when_seen(_, process, screen):
            if line.search(screen):
                process.kill()

        # As many iterations as no machine does before the line is drawn.
        words = ("simulate", PPO, *sets(**SMALL), "--iterations")
        code, screen = on_terminal(*words, "1000000000", columns=200, watch=stop_when_seen)
        self.assertEqual(code, -signal.SIGKILL, screen)
        self.assertEqual(run(*words, "4000").stderr, "")

    def test_fewer_iterations_take_less(self):
        one, two = (self.simulated("--iterations", count)["variants"][0] for count in ("1", "2"))
        self.assertEqual((one["iterations"], two["iterations"]), (1, 2))
        self.assertLess(one["seconds"], two["seconds"])

    def test_writes_the_trace_of_a_run_that_did_not_take_place(self):
        trace = self.folder / "trace.json"
        seconds = self.simulated("--trace", trace)["variants"][0]["seconds"]
        slices = [event for event in json.loads(trace.read_text()) if event["ph"] == "X"]
        self.assertAlmostEqual(max(event["ts"] + event["dur"] for event in slices) * 1e-6, seconds, places=5)


class Ranks(SimulateCase):
    def test_are_told_with_what_they_wait_for(self):
        text = self.simulate("--ranks", "4")
        self.assertTrue(text.startswith("ppo: 2 iterations would take "), text)
        self.assertRegex(text.splitlines()[0], r" on 4 ranks$")
        for line in ("busy", "waits for others", "waits for the network"):
            self.assertRegex(text, rf"(?m)^  {line} +\d+ % +\d+ % +\d+ %$")
        (variant,) = self.simulated("--ranks", "4")["variants"]
        ranks = variant["ranks"]
        self.assertEqual(ranks["count"], 4)
        self.assertLessEqual(ranks["busy"]["least"], ranks["busy"]["mean"])
        self.assertLessEqual(ranks["busy"]["mean"], ranks["busy"]["most"])
        self.assertGreater(ranks["network_seconds"], 0)
        self.assertEqual([variant], self.simulated("--ranks", "4")["variants"])
        self.assertNotIn("ranks", self.simulated()["variants"][0])

    def test_a_slow_network_costs_time(self):
        as_it_is, slow = self.simulated("--ranks", "2", "--what-if",
                                        "cluster.network.host_latency_microseconds=20000")["variants"]
        self.assertGreater(slow["seconds"], as_it_is["seconds"] + 2 * 0.02)
        self.assertGreater(slow["ranks"]["waits_for_network"]["mean"], as_it_is["ranks"]["waits_for_network"]["mean"])


class Roles(SimulateCase):
    def setUp(self):
        super().setUp()
        nodes = {"generate": "rollout", **dict.fromkeys(("score", "reference", "advantages", "train", "sync", "held_out_score"),
                                                        "train"), "held_out_answers": "rollout"}
        ons = "".join(f'[nodes.{name}]\non = "{role}"\n' for name, role in nodes.items())
        roles = "[cluster.roles.train]\nranks = 2\n[cluster.roles.rollout]\nranks = 2\n"
        self.pipeline = self.write("roles.toml",
                                   f'extends = "{ROOT / "pipelines" / "grpo.toml"}"\n[cluster]\nslots = 4\n{roles}{ons}')

    def simulate(self, *words, **overrides):
        done = run("simulate", self.pipeline, *words, *sets(**{"pipeline.iterations": 3, **overrides}))
        self.assertEqual(done.returncode, DONE, done.stderr + done.stdout)
        return done.stdout

    def test_are_told_with_what_they_wait_for(self):
        text = self.simulate()
        self.assertRegex(text.splitlines()[0], r" on 4 ranks$")
        self.assertRegex(text, r"(?m)^  role +ranks +busy +waits for weights +for groups or credit +for others +for the network$")
        for role in ("train", "rollout"):
            self.assertRegex(text, rf"(?m)^  {role} +2( +\d+ %){{5}}$")
        (variant,) = self.simulated()["variants"]
        train, rollout = variant["ranks"]["roles"]
        self.assertEqual((train["name"], train["ranks"], rollout["name"], rollout["ranks"]), ("train", 2, "rollout", 2))
        self.assertEqual(train["waits_for_weights"]["mean"], 0)
        self.assertGreater(rollout["waits_for_weights"]["mean"], 0)
        self.assertGreater(train["waits_for_groups"]["mean"], 0)
        for role in (train, rollout):
            self.assertLessEqual(sum(role[key]["mean"] for key in role if key not in ("name", "ranks")), 1 + 1e-9)
        self.assertGreater(variant["ranks"]["weights_carried"]["bytes"], 0)
        self.assertEqual([executor["name"] for executor in variant["executors"]], ["train/cpu", "rollout/cpu"])
        self.assertEqual([variant], self.simulated()["variants"])

    def test_a_slow_network_delays_the_weights(self):
        slow = "cluster.network.host_gigabytes_per_second=0.01"
        as_it_is, slow = self.simulated("--what-if", slow)["variants"]
        self.assertGreater(slow["ranks"]["weights_carried"]["seconds"], 10 * as_it_is["ranks"]["weights_carried"]["seconds"])
        self.assertGreater(slow["seconds"], as_it_is["seconds"])

    def test_splits_are_compared(self):
        split = "cluster.roles.train.ranks=1 cluster.roles.rollout.ranks=3"
        words = ("--what-if", "cluster.roles.rollout.ranks=3", "--what-if", split)
        counts = [[role["ranks"] for role in variant["ranks"]["roles"]] for variant in self.simulated(*words)["variants"]]
        self.assertEqual(counts, [[2, 2], [2, 3], [1, 3]])
        text = self.simulate(*words)
        self.assertRegex(text, rf"(?m)^  {split} +1 \+ 3 +[0-9.]+ m?s ")
        self.assertRegex(text, r"(?m)^  the shortest time: ")
        self.assertRegex(text, r"(?m)^  the least time of all ranks together: ")

    def test_go_by_the_costs_of_a_run_with_roles_and_of_one_without(self):
        alone, apart = self.folder / "alone", self.folder / "apart"
        small = sets(**{"pipeline.iterations": 3, "cluster.slots": 4})
        for words in (("run", ROOT / "pipelines" / "grpo.toml", "--run-dir", alone),
                      ("launch", self.pipeline, "--run-dir", apart)):
            done = run(*words, *small)
            self.assertEqual(done.returncode, DONE, done.stderr)
        for folder in (alone, apart):
            generate = json.loads((folder / "costs.json").read_text())["nodes"]["generate"]
            self.assertGreater(generate.get("per_sampled_token_us", 0) + generate.get("per_step_us", 0), 0, folder)
            (variant,) = self.simulated("--costs", folder)["variants"]
            self.assertFalse([note for note in variant["notes"] if "not measured" in note], folder)
            self.assertTrue(all(role["busy"]["mean"] > 0 for role in variant["ranks"]["roles"]), folder)


class Costs(SimulateCase):
    def test_of_a_run_are_what_it_was(self):
        measured = self.run_ppo(**{"pipeline.iterations": 15})
        costs = json.loads((measured.folder / "costs.json").read_text())
        self.assertEqual((costs["pipeline"], costs["iterations"]), ("ppo", 15))
        self.assertGreater(costs["seconds"], 0)
        self.assertEqual(set(costs["nodes"]) >= {"generate", "reference", "values", "train"}, True)
        generate = costs["nodes"]["generate"]  # what is 0 is left out
        self.assertGreater(generate.get("per_sampled_token_us", 0) + generate.get("per_step_us", 0), 0)
        self.assertGreater(costs["nodes"]["train"].get("per_token_us", 0) + costs["nodes"]["train"].get("per_batch_us", 0), 0)
        lengths = costs["lengths"]
        self.assertEqual([entry["first_iteration"] for entry in lengths], list(range(15)))
        sampled = sum(length * count for entry in lengths for length, count in entry["response"])
        self.assertEqual(sampled, sum(row["rollout/sampled_tokens"] for row in measured.metrics))

        result = self.simulated("--costs", measured.folder, "--what-if",
                                "budget.tokens_in_flight=2048", "--what-if", "budget.micro_batch_tokens=512",
                                **{"pipeline.iterations": 15, "nodes.advantages.whiten": "none", "nodes.train.mini_batches": 1})
        self.assertFalse(result["estimated"])
        self.assertEqual(result["measured_iterations"], 15)
        base, tight, small = result["variants"]
        self.assertEqual([variant["setting"] for variant in (base, tight, small)],
                         ["", "budget.tokens_in_flight=2048", "budget.micro_batch_tokens=512"])
        self.assertEqual(base["ratio"], 1)
        self.assertEqual(base["iterations"], 15)
        self.assertLessEqual(tight["tokens_in_flight_peak"], 2048)
        micro_batches = {variant["setting"]: {node["name"]: node["micro_batches"] for node in variant["nodes"]}["train"]
                         for variant in (base, small)}
        self.assertGreater(micro_batches["budget.micro_batch_tokens=512"], micro_batches[""])
        for variant in (base, tight, small):
            self.assertGreater(variant["seconds"], 0)
            self.assertEqual(variant["notes"], [])

        table = self.simulate("--costs", measured.folder, "--what-if", "schedule.policy_lag=1",
                              **{"nodes.advantages.whiten": "none"})
        self.assertIn(f"by the costs of {measured.folder} (15 iterations in ", table)
        self.assertRegex(table, r"(?m)^  as it is +[0-9.]+ m?s +1\.00 ")
        self.assertRegex(table, r"(?m)^  schedule\.policy_lag=1 +[0-9.]+ m?s +[0-9.]+ ")

    def test_that_are_missing_or_wrong_are_refused(self):
        done = run("simulate", PPO, "--costs", self.folder)
        self.assert_refused(done, f"{self.folder} has no costs.json", "a run writes it when it ends")
        self.assert_refused(run("simulate", PPO, "--costs", self.folder / "none.json"), "none.json")
        wrong = self.write("costs.json", '{"version": 1, "nodes": {"train": {"per_token_us": "much"}}, "lengths": []}')
        self.assert_refused(run("simulate", PPO, "--costs", wrong), str(wrong), "nodes.train.per_token_us must be a number")
        self.write("costs.json", '{"version": 1,\n')
        self.assert_refused(run("simulate", PPO, "--costs", wrong), "costs.json:2:1")


class Refused(SimulateCase):
    def test_a_setting_that_the_pipeline_does_not_know(self):
        done = run("simulate", PPO, "--what-if", "budget.token_in_flight=1")
        self.assert_refused(done, "--what-if:1:8: error", "did you mean tokens_in_flight?")
        self.assert_refused(run("simulate", PPO, "--what-if", ""), "--what-if is empty")

    def test_all_variants_that_are_wrong_are_told_before_any_is_simulated(self):
        words = ("--what-if", "schedule.policy_lag=1", "--what-if", "budget.token_in_flight=1", "--what-if",
                 "nodes.train.mini_batchs=2")
        done = run("simulate", PPO, *words)
        self.assert_refused(done, "--what-if:1:8: error: token_in_flight is not", "--what-if:1:13: error: mini_batchs is not",
                            problems=2)
        self.assertEqual(done.stdout, "")
        done = run("simulate", PPO, *words, *sets(**{"budget.tokens_in_flight": 1}))  # then the variants are wrong for that, too
        self.assert_refused(done, "--set:1:25: error: ", problems=1)

    def test_a_setting_with_which_the_run_would_stall(self):
        done = run("simulate", PPO, "--what-if", "budget.tokens_in_flight=100")
        self.assertEqual(done.returncode, WRONG_PIPELINE, done.stderr)
        done = run("simulate", PPO, "--what-if", "nodes.generate.max_new_tokens=2000")  # wrong where the file says something else
        self.assertEqual(done.returncode, WRONG_PIPELINE)
        self.assertIn("with --what-if nodes.generate.max_new_tokens=2000", done.stderr)

    # Times are whole nanoseconds: beyond centuries there are no more.
    def test_refuses_to_simulate_centuries(self):
        for speed, says in (("1e-10", "takes more than a year"), ("1e-5", "takes more than a hundred years")):
            with self.subTest(speed):
                self.assert_refused(run("simulate", PPO, "--gflops", speed, "--iterations", "10000"), says)

    def test_a_speed_beside_measured_costs(self):
        self.assertEqual(run("simulate", PPO, "--costs", self.folder, "--gflops", "3").returncode, WRONG_USAGE)


if __name__ == "__main__":
    unittest.main()
