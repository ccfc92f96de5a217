"""Numbers that are scheduled over a run: what the metrics say, what the plan draws, and runs that go on."""

import json
import math
import os
import unittest

from support import DONE, PPO, SMALL, Case, repeatable, run, sets

KL = "nodes.rewards.kl_coefficient"
OBJECTIVE = "nodes.train.objective"
TEMPERATURE = [f"nodes.{node}.temperature" for node in ("generate", "reference", "train")]
CLIPS = ('{ type = "ppo_clip", clip_low = { from = 0.2, to = 0.1, over = 4 }, clip_high = { from = 0.2, to = 0.3, schedule = '
         '"cosine", over = 5 }, entropy_coefficient = { from = 0.01, to = 0.0, schedule = "wsd", decay = 2, over = 5 } }')
ALL = {"pipeline.iterations": 6, KL: '{ from = 0.1, to = 0.02, schedule = "cosine", warmup = 1, over = 5 }', OBJECTIVE: CLIPS,
       "nodes.train.value_objective": '{ type = "value_clip", clip = { from = 0.4, to = 0.2, over = 4 } }',
       **{key: "{ from = 1.0, to = 0.7, over = 4 }" for key in TEMPERATURE}}
SCHEDULED = ("reward/kl_coefficient", "policy/clip_low", "policy/clip_high", "policy/entropy_coefficient", "value/clip",
             "rollout/temperature")


def line(begin, end, over):
    return lambda i: begin + (end - begin) * min(1, i / over)


def cosine(begin, end, over, warmup=0):
    def at(i):
        if i < warmup:
            return begin * i / warmup
        return end + (begin - end) * 0.5 * (1 + math.cos(math.pi * min(1, (i - warmup) / (over - warmup))))
    return at


class Schedules(Case):
    maxDiff = None

    def test_metrics_have_what_each_iteration_had(self):
        rows = self.run_ppo(**ALL).metrics
        expected = {"reward/kl_coefficient": cosine(0.1, 0.02, 5, 1),
                    "policy/clip_low": line(0.2, 0.1, 4), "policy/clip_high": cosine(0.2, 0.3, 5),
                    "policy/entropy_coefficient": lambda i: [0.01, 0.01, 0.01, 0.01, 0.005, 0][i],
                    "value/clip": line(0.4, 0.2, 4), "rollout/temperature": line(1, 0.7, 4)}
        self.assertEqual(len(rows), 6)
        for i, row in enumerate(rows):
            for name, number in expected.items():
                self.assertAlmostEqual(row[name], number(i), delta=1e-15, msg=f"{name} in iteration {i}")
            self.assertEqual(row["policy/logprob_difference_max"], 0)  # training has the temperature that was sampled with
        plain = self.run_ppo("plain").metrics[0]
        self.assertEqual([name for name in SCHEDULED if name in plain], ["reward/kl_coefficient"])

    def test_the_same_number_all_along_is_that_number(self):
        numbers = {KL: 0.05, OBJECTIVE: '{ type = "ppo_clip", clip_low = 0.1, entropy_coefficient = 0.01 }',
                   **{key: 0.8 for key in TEMPERATURE}}
        same = lambda number: f"{{ from = {number}, to = {number} }}"
        tables = {KL: same(0.05), OBJECTIVE: f'{{ type = "ppo_clip", clip_low = {same(0.1)}, '
                  f'entropy_coefficient = {same(0.01)} }}', **{key: same(0.8) for key in TEMPERATURE}}
        self.run_ppo("numbers", **numbers)
        self.run_ppo("tables", **tables)
        self.assertEqual(self.lines_of("tables"), self.lines_of("numbers"))
        self.assertEqual(self.models_of("tables"), self.models_of("numbers"))

    def test_a_run_that_goes_on_within_its_schedules_has_the_same_bits(self):
        folder = self.run_ppo(**ALL,
                              **{"checkpoint.every_iterations": 2, "checkpoint.keep_last": 0, "schedule.policy_lag": 1}).folder
        before = self.lines_of("run"), self.models_of("run")
        done = run("resume", folder, "--from", "2")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual((self.lines_of("run"), self.models_of("run")), before)

    def test_ranks_that_share_an_optimizer_have_the_same_bits(self):
        more = (ALL | {"cluster.slots": 4,
                       "models.actor.optimizer.groups": '[{ match = "model.layers.0.*", learning_rate_scale = 0.3 }]'})
        self.run_ppo("one", **more)
        done = run("launch", "--ranks", 2, PPO, "--run-dir", self.folder / "two", *sets(**(SMALL | more)))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual((self.lines_of("two"), self.models_of("two")), (self.lines_of("one"), self.models_of("one")))

    def test_losses_do_not_depend_on_micro_batches(self):
        one = {"nodes.train.mini_batches": 1}  # whose one step adds sums of all micro-batches
        large = self.run_ppo("large", **ALL, **one, **{"budget.micro_batch_tokens": 2048}).metrics
        small = self.run_ppo("small", **ALL, **one, **{"budget.micro_batch_tokens": 128, "budget.pass_tokens": 64}).metrics
        for first, second in zip(repeatable(large), repeatable(small)):
            self.assertEqual({name: first[name] for name in SCHEDULED}, {name: second[name] for name in SCHEDULED})
        for name in ("policy/loss", "value/loss", "reward/token_reward_mean", "policy/grad_norm"):
            self.assertAlmostEqual(large[0][name], small[0][name], delta=1e-5, msg=name)

    def test_other_iterations_change_results_where_a_schedule_follows_them(self):
        short, more = {"pipeline.iterations": 1}, sets(**{"pipeline.iterations": 2})
        follows = self.run_ppo("follows", **short, **{KL: "{ from = 0.1, to = 0.02 }"}).folder
        self.assert_refused(run("resume", follows, *more), "iterations: 1 -> 2 (kl_coefficient of rewards follows it)",
                            "--accept-changes")
        fixed = self.run_ppo("fixed", **short, **{KL: "{ from = 0.1, to = 0.02, over = 4 }"}).folder
        done = run("resume", fixed, *more)
        self.assertEqual(done.returncode, DONE, done.stderr)
        other = run("resume", fixed, *sets(**{KL: "{ from = 0.1, to = 0.02, over = 5 }", "pipeline.iterations": 3}))
        self.assert_refused(other, "[nodes.rewards] kl_coefficient: { from = 0.1, to = 0.02", "--accept-changes")

    def test_the_effective_pipeline_is_the_same_pipeline(self):
        layered = self.layer("")
        config = run("plan", layered, "--config", *sets(**ALL))
        self.assertEqual(config.returncode, DONE, config.stderr)
        again = run("plan", self.write("effective.toml", config.stdout), "--config")
        keys = lambda text: [line.split("  #")[0].rstrip() for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(keys(again.stdout), keys(config.stdout), again.stderr)
        self.assertIn('kl_coefficient = { from = 0.1, to = 0.02, schedule = "cosine", warmup = 1.0, over = 5.0 }', config.stdout)

    def test_the_plan_says_how_numbers_go_and_draws_them(self):
        layered = self.layer("")
        done = run("plan", layered, *sets(**ALL))
        self.assertIn("  scheduled    generate.temperature 1.0, straight to 0.7, in 4 iterations\n", done.stdout, done.stderr)
        self.assertIn("rewards.kl_coefficient 0.1, warm-up of 1 iteration, cosine to 0.02, in 5 iterations\n", done.stdout)
        drawn = run("plan", layered, "--plot", *sets(**ALL), env=self.locale("C.UTF-8"))
        plain = run("plan", layered, "--plot", *sets(**ALL), env=self.locale("C"))
        for text in (drawn.stdout, plain.stdout):
            self.assertIn("learning rate of actor\n  first 0.0001   last 0.0001   min 0.0001   max 0.0001\n", text)
            self.assertIn("  first 0   last 0.02   min 0   max 0.1\n", text)
            self.assertLessEqual(max(len(line) for line in text.splitlines() if "┤" in line or "|" in line), 80)
        self.assertTrue(any("⠀" <= sign <= "⣿" for sign in drawn.stdout))
        self.assertTrue(plain.stdout.isascii(), plain.stdout)

    def test_the_points_of_a_plot_are_those_of_its_json(self):
        layered, more = self.layer(""), sets(**(ALL | {"pipeline.iterations": 1000, KL: "{ from = 0.1, to = 0.0 }"}))
        done = run("plan", layered, "--plot", "--format", "json", *more, env=self.locale("C.UTF-8"))
        plot = json.loads(done.stdout)
        self.assertEqual(plot["iterations"], 1000)
        curves = {curve["name"]: curve for curve in plot["schedules"]}
        self.assertEqual(set(curves),
                         {"learning rate of actor", "learning rate of critic", "generate.temperature", "reference.temperature",
                          "rewards.kl_coefficient", "train.temperature", "train.objective.clip_low", "train.objective.clip_high",
                          "train.objective.entropy_coefficient", "train.value_objective.clip"})
        curve = curves["rewards.kl_coefficient"]
        self.assertEqual((curve["first"], curve["max"], curve["points"][0], curve["points"][-1][0]), (0.1, 0.1, [0, 0.1], 999))
        self.assertEqual((curve["last"], curve["min"]), (curve["points"][-1][1], curve["points"][-1][1]))
        self.assertEqual(len(curve["points"]), 2 * 68)
        for iteration, value in curve["points"]:
            self.assertAlmostEqual(value, 0.1 * (1 - iteration / 1000), delta=1e-15)

    def test_groups_of_an_optimizer_are_counted_and_train(self):
        groups = {"models.actor.optimizer.groups": '[{ match = "model.layers.0.*", learning_rate_scale = 0.0 }, { match = '
                  '"*norm*", weight_decay = 0.5 }]'}
        plan = run("plan", self.layer(""), *sets(**groups))
        self.assertIn("  groups       actor model.layers.0.* (learning rate x 0.0): ", plan.stdout, plan.stderr)
        self.assertIn("               actor *norm* (weight decay 0.5): ", plan.stdout)
        before, after = (self.run_ppo("one", **groups, **{"pipeline.iterations": 1}).weights("actor"),
                         self.run_ppo("two", **groups).weights("actor"))
        moved = {name for name in before if before[name] != after[name]}
        self.assertEqual({name for name in before if name.startswith("model.layers.0.")} & moved, set())
        self.assertEqual({name for name in before if not name.startswith("model.layers.0.")}, moved)

    @staticmethod
    def locale(name):
        return {key: value for key, value in os.environ.items() if not key.startswith("LC_")} | {"LANG": name, "LC_ALL": name}


if __name__ == "__main__":
    unittest.main()
