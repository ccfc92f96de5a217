"""[cluster] sequence_parallel: several ranks compute each pass together; one of them has the micro-batches, and the others
assist."""

import json
import os
import signal
import unittest

from pipeline_case import DONE, ROOT, ROUTES, SLOTS, RanksCase, run, sets, with_roles

REFUSED = 78
LONG = 8192


def pairs(ranks):
    return {"cluster.sequence_parallel": ranks}


class SequenceCase(RanksCase):
    def four_heads(self, *models, **changed):
        """Their keys have as many, so that as many ranks can share a pass."""
        return self.random(*models, num_key_value_heads=4, **changed)

    def assert_first_iteration_equal(self, ours, theirs):
        """Before the first step nothing but the norm of its gradient has been rounded otherwise."""
        first, other = self.lines_of(ours)[0], self.lines_of(theirs)[0]
        self.assertEqual(sorted(first), sorted(other))
        for name, value in other.items():
            if name.endswith("grad_norm"):
                self.assertAlmostEqual(first[name], value, delta=1e-6 * abs(value), msg=name)
            else:
                self.assertEqual(first[name], value, name)


class Learning(SequenceCase):
    def test_numbers_of_ranks_that_share_a_pass_learn_alike(self):
        more = self.four_heads("actor", "reference") | {"pipeline.iterations": 6}
        alone, two, four = (self.run_on(4, "grpo.toml", f"-{ranks}", **more, **pairs(ranks)) for ranks in (1, 2, 4))
        for shared in (two, four):
            self.assert_first_iteration_equal(shared, alone)
            for ours, theirs in zip(self.lines_of(shared), self.lines_of(alone)):
                for name in ("policy/entropy_mean", "policy/sampled_logprob_diff_abs_mean", "reward/score_mean"):
                    if name in theirs:
                        self.assertAlmostEqual(ours[name], theirs[name], delta=5e-3 * max(1, abs(theirs[name])), msg=name)

    def test_all_that_is_computed_in_passes_is_shared(self):
        """Values, pairs of answers, labelled text, scores of a reward model, adapters and their base, a mixture whose routers
        have a loss."""
        mixture = {"models.actor.checkpoint": str(self.mixture()), "models.actor.router_aux_loss": 0.01, **ROUTES}
        cases = {"ppo.toml": {}, "dpo.toml": {}, "sft.toml": {}, "reward_model.toml": {}, "distill.toml": {},
                 ROOT / "tests/pipelines/grpo_experts.toml": mixture,
                 "grpo.toml": {"models.actor.lora": "{ rank = 4, alpha = 8 }", "models.reference.checkpoint": "",
                               "models.reference.base_of": "actor"}}
        for pipeline, more in cases.items():
            with self.subTest(str(pipeline)):
                more = more | {"pipeline.iterations": 1}
                alone = self.run_on(1, pipeline, "alone", **more)
                shared = self.run_on(4, pipeline, **more, **pairs(2))
                self.assert_first_iteration_equal(shared, alone)

    def test_ways_to_share_optimizers_have_one_result(self):
        runs = [self.run_on(4, "ppo.toml", f"-{shard}", **pairs(2), **{"cluster.shard": shard, "pipeline.iterations": 2})
                for shard in ("none", "optimizer")]
        self.assert_equal_runs(*runs)
        common = [self.run_on(ranks, "ppo.toml", "-common", **pairs(2),
                              **{"cluster.shard": "parameters", "pipeline.iterations": 2}) for ranks in (2, 4)]
        self.assert_equal_runs(*common)

    def test_beside_ranks_that_sample(self):
        pipeline = self.folder / "apart.toml"
        pipeline.write_text(with_roles("grpo.toml", training=4, sampling=2))
        done = run("launch", pipeline, "--run-dir", self.folder / "apart",
                   *sets(**SLOTS, **pairs(2), **{"pipeline.iterations": 3}), timeout=300)
        self.assertEqual(done.returncode, DONE, done.stderr)
        together = self.run_on(4, "grpo.toml", "-together", **pairs(2), **{"pipeline.iterations": 3})
        self.assert_equal_runs(self.folder / "apart", together)


class Ring(SequenceCase):
    """More ranks than heads of keys: the models that come with the program have two."""

    def assert_near(self, ours, theirs, most):
        self.assertEqual(sorted(ours), sorted(theirs))
        for name, value in theirs.items():
            self.assertAlmostEqual(ours[name], value, delta=most * max(1, abs(value)), msg=name)

    def test_more_ranks_than_heads_learn_alike(self):
        ring = pairs(4) | {"cluster.ring": 2}
        alone = self.run_on(4, "grpo.toml", "-alone", **{"pipeline.iterations": 3})
        shared = self.run_on(4, "grpo.toml", "-ring", **ring, **{"pipeline.iterations": 3})
        again = self.run_on(4, "grpo.toml", "-again", **ring, **{"pipeline.iterations": 3})
        self.assert_equal_runs(shared, again)
        self.assert_near(self.lines_of(shared)[0], self.lines_of(alone)[0], 1e-5)
        for ours, theirs in zip(self.lines_of(shared), self.lines_of(alone)):
            self.assertAlmostEqual(ours["policy/entropy_mean"], theirs["policy/entropy_mean"], delta=5e-3)
            self.assertAlmostEqual(ours["reward/score_mean"], theirs["reward/score_mean"], delta=5e-3)

    def test_values_are_learnt_in_a_ring(self):
        more = {"pipeline.iterations": 1}
        alone, shared = (self.run_on(1, "ppo.toml", "alone", **more),
                         self.run_on(2, "ppo.toml", **more, **pairs(2), **{"cluster.ring": 2}))
        self.assert_near(self.lines_of(shared)[0], self.lines_of(alone)[0], 1e-5)

    def test_plan_says_what_is_a_ring_and_refuses_what_is_none(self):
        plan = ("plan", "--ranks", 4, ROOT / "pipelines/grpo.toml")
        shown = run(*plan, *sets(**SLOTS, **pairs(4), **{"cluster.ring": 2}))
        self.assertIn("ranks 1-3 assist rank 0: 4 of them compute each pass together, in a ring of 2\n", shown.stdout,
                      shown.stderr)
        for ring, says in ((3, "a ring of 3 cannot be made of 4 ranks"), (1, "sequence_parallel = 2, or ring = 2")):
            refused = run(*plan, *sets(**SLOTS, **pairs(4), **{"cluster.ring": ring}))
            self.assertEqual(refused.returncode, REFUSED)
            self.assertIn(says, refused.stderr)


class SampledTogether(SequenceCase):
    """[cluster] tensor_parallel: those that compute passes together make steps of sampling together, each with some columns."""

    def test_numbers_of_ranks_sample_the_same_tokens(self):
        """With the bits of a rank that samples alone, and so all that is learnt: several versions, weights in common, replies."""
        four = self.four_heads("actor", "reference")
        cases = (("grpo.toml", 4, four), ("remax.toml", 2, four | {"schedule.policy_lag": 1}),
                 ("calculator.toml", 2, {"cluster.shard": "parameters"}))
        for pipeline, most, more in cases:
            with self.subTest(str(pipeline)):
                numbers = [ranks for ranks in (1, 2, 4) if ranks <= most]
                more = more | {"pipeline.iterations": 3} | pairs(most)
                runs = [self.run_on(4, pipeline, f"-{ranks}", **more, **{"cluster.tensor_parallel": ranks}) for ranks in numbers]
                for ranks, together in zip(numbers, runs):
                    self.assert_equal_runs(together, runs[0])
                    self.assertEqual(ranks * self.held(together, "KV cache")[0], self.held(runs[0], "KV cache")[0])
                    for name in ("KV cache", "weights"):
                        planned, peak = self.held(together, name)
                        self.assertLessEqual(peak, planned, name)
                    self.assertGreater(peak, 0.999 * planned)
                    self.assertLessEqual(peak, self.held(runs[0], "weights")[1])

    def test_experts_of_a_mixture_are_shared_out(self):
        """In columns, which is to be seen nowhere; or whole ones, whose gradients alone round otherwise: wherever they are
        sampled from. The first layer has an MLP."""
        more = ({"models.actor.checkpoint": str(self.mixture(decoder_sparse_step=2)), "models.actor.router_aux_loss": 0.01,
                 "pipeline.iterations": 2} | pairs(2))
        ways = {"alone": {}, "columns": {"cluster.tensor_parallel": 2}, "experts": {"cluster.expert_parallel": 2},
                "both": {"cluster.expert_parallel": 2, "cluster.tensor_parallel": 2},
                "common": {"cluster.expert_parallel": 2, "cluster.shard": "parameters"}}
        pipeline, half = ROOT / "tests/pipelines/grpo_experts.toml", {"pipeline.iterations": 1}
        runs = {way: self.run_on(4, pipeline, f"-{way}", **more | (half if way == "both" else {}), **keys)
                for way, keys in ways.items()}
        done = run("launch", "--ranks", 4, pipeline, "--run-dir", runs["both"], "--resume", "auto",
                   *sets(**SLOTS, **more, **ways["both"]), timeout=300)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assert_equal_runs(runs["columns"], runs["alone"])
        self.assert_equal_runs(runs["both"], runs["experts"])
        for way in ("experts", "common"):
            self.assert_first_iteration_equal(runs[way], runs["alone"])
            self.assertAlmostEqual(self.lines_of(runs[way])[-1]["reward/score_mean"],
                                   self.lines_of(runs["alone"])[-1]["reward/score_mean"], delta=0.02)
        for way, folder in runs.items():
            heads = ways[way].get("cluster.tensor_parallel", 1)
            self.assertEqual(heads * self.held(folder, "KV cache")[0], self.held(runs["alone"], "KV cache")[0])
            for name in ("KV cache", "weights", "gradients", "activations"):
                planned, peak = self.held(folder, name)
                self.assertLessEqual(peak, planned, f"{name} of {way}")
        self.assertLess(self.held(runs["experts"], "weights")[1], self.held(runs["alone"], "weights")[1])

    def held(self, folder, name):
        """Of a class of memory what was planned, and the most that there was."""
        of = next(of for of in json.loads((folder / "memory.json").read_text())["classes"] if of["name"] == name)
        return of["planned_bytes"], of["peak_bytes"]

    def test_a_run_folder_may_be_relative(self):
        folder = self.folder / "relative"
        done = run("launch", "--ranks", 2, ROOT / "pipelines/grpo.toml", "--run-dir", os.path.relpath(folder, ROOT),
                   *sets(**SLOTS, **pairs(2), **{"pipeline.iterations": 1}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertTrue((folder / "checkpoint" / "actor" / "config.json").exists())

    def test_goes_on_with_another_number_of_ranks_that_sample(self):
        more = ({"checkpoint.every_iterations": 1, "nodes.held_out": "false", "nodes.held_out_answers": "false",
                 "nodes.held_out_score": "false"} | pairs(2))
        whole = self.run_on(4, "grpo.toml", "-whole", **more, **{"pipeline.iterations": 4})
        folder = self.run_on(4, "grpo.toml", **more, **{"pipeline.iterations": 2, "cluster.tensor_parallel": 2})
        done = run("launch", "--ranks", 4, ROOT / "pipelines/grpo.toml", "--run-dir", folder, "--resume", "auto",
                   *sets(**SLOTS, **more, **{"pipeline.iterations": 4}), timeout=300)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assert_equal_runs(folder, whole)

    def test_plan_counts_a_part_and_refuses_what_cannot_be_divided(self):
        def plan(**more):
            return run("plan", "--format", "json", "--ranks", 4, ROOT / "pipelines/grpo.toml", *sets(**SLOTS, **more))

        alone, together = (json.loads(plan(**pairs(2), **{"cluster.tensor_parallel": ranks}).stdout)["predicted"]
                           for ranks in (1, 2))
        self.assertEqual(2 * together["kv_bytes"], alone["kv_bytes"])
        self.assertLess(together["weights_bytes"], alone["weights_bytes"])
        cases = (({"cluster.tensor_parallel": 2}, "2 ranks cannot sample together where 1 computes each pass"),
                 (pairs(4) | {"cluster.tensor_parallel": 3, "cluster.ring": 2},
                  "3 ranks cannot sample together where 4 compute each pass"),
                 (pairs(4) | {"cluster.tensor_parallel": 4, "cluster.ring": 2}, "'actor' has 2"),
                 (pairs(4) | {"cluster.expert_parallel": 3, "cluster.ring": 2},
                  "3 ranks cannot share out experts where 4 compute each pass"),
                 (pairs(4) | {"cluster.expert_parallel": 2, "cluster.tensor_parallel": 4, "cluster.ring": 4},
                  "is no multiple of tensor_parallel, which is 4"),
                 (pairs(2) | {"cluster.expert_parallel": 2}, "no model is a mixture"))
        for more, says in cases:
            refused = plan(**more)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertIn(says, refused.stderr)

    def test_plan_counts_the_experts_of_a_rank(self):
        def plan(**more):
            mixture = ({"models.actor.checkpoint": str(self.mixture()), "nodes.train.on_policy": "measured"} | pairs(4) |
                       {"cluster.ring": 2})
            return run("plan", "--format", "json", "--ranks", 4, ROOT / "tests/pipelines/grpo_experts.toml",
                       *sets(**(SLOTS | mixture | more)))

        def predicted(name, **more):
            return [json.loads(plan(**{"cluster.expert_parallel": ranks}, **more).stdout)["predicted"][name]
                    for ranks in (1, 2, 4)]

        of_layer = 8 * 3 * 64 * self.hidden() * 4  # experts, matrices
        alone, two, four = predicted("weights_bytes")
        self.assertEqual((alone - two, alone - four), (of_layer, 3 * of_layer // 2))
        alone, two, four = predicted("gradient_bytes", **{"cluster.shard": "parameters"})
        self.assertEqual((alone - two, alone - four), (of_layer // 2, 3 * of_layer // 4))
        refused = plan(**{"cluster.expert_parallel": 4, "models.actor.checkpoint": str(self.mixture(num_experts=6))})
        self.assertEqual(refused.returncode, REFUSED, refused.stdout)
        self.assertIn("4 ranks divide the experts of a layer among them, on the CPU: 'actor' has 6", refused.stderr)

    def hidden(self):
        return json.loads((self.mixture() / "config.json").read_text())["hidden_size"]


class Going(SequenceCase):
    def test_goes_on_from_a_checkpoint(self):
        more = {"checkpoint.every_iterations": 1, "nodes.held_out": "false", "nodes.held_out_answers": "false",
                "nodes.held_out_score": "false"}
        whole = self.run_on(4, "ppo.toml", "-whole", **pairs(2), **{"pipeline.iterations": 4}, **more)
        folder = self.run_on(4, "ppo.toml", **pairs(2), **{"pipeline.iterations": 2}, **more)
        again = ("launch", "--ranks", 4, ROOT / "pipelines/ppo.toml", "--run-dir", folder, "--resume", "auto")
        done = run(*again, *sets(**SLOTS, **pairs(2), **{"pipeline.iterations": 4}, **more), timeout=300)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assert_equal_runs(folder, whole)
        done = run(*again, *sets(**SLOTS, **{"pipeline.iterations": 5}, **more), timeout=300)
        self.assertNotEqual(done.returncode, DONE)
        self.assertIn("[cluster] sequence_parallel: 2 -> 1", done.stderr)

    def test_a_rank_that_assists_and_is_killed_takes_the_others_along(self):
        self.kill_a_rank(2, "ppo.toml", rank=1, **pairs(2), **{"cluster.tensor_parallel": 2})

    def test_an_interrupt_ends_all_ranks(self):
        launched = self.launched(2, "ppo.toml", **pairs(2), **{"cluster.tensor_parallel": 2})
        launched.send_signal(signal.SIGINT)
        _, said = launched.communicate(timeout=60)
        self.assertEqual(launched.returncode, 130, said)
        self.assertNotIn("error", said)


class Planning(SequenceCase):
    def plan(self, ranks, pipeline, **more):
        return run("plan", "--ranks", ranks, ROOT / "pipelines" / pipeline, *sets(**{**SLOTS, **more}))

    def test_says_who_assists_whom(self):
        shown = self.plan(4, "grpo.toml", **pairs(2))
        self.assertEqual(shown.returncode, DONE, shown.stderr)
        self.assertIn("ranks 2-3 assist ranks 0-1: 2 of them compute each pass together\n", shown.stdout)

    def test_refuses_what_ranks_cannot_share(self):
        for ranks, together, says in ((3, 2, "3 ranks cannot be parted into groups of 2"),
                                      (4, 4, "divide the heads of keys and values among them: 'actor' has 2, 'reference' has 2")):
            refused = self.plan(ranks, "grpo.toml", **{"cluster.slots": 12}, **pairs(together))
            self.assertEqual(refused.returncode, REFUSED)
            self.assertIn(says, refused.stderr)

    def test_one_rank_does_without(self):
        self.assertEqual(self.plan(1, "grpo.toml", **pairs(2)).returncode, DONE)

    def test_a_long_sample_that_one_rank_refuses_trains_on_four(self):
        data = self.folder / "long.jsonl"
        data.write_text(json.dumps({"prompt": "1+1=", "completion": "2" * (LONG - 8)}) + "\n")
        long = {"nodes.examples.path": str(data), "nodes.examples.groups_per_iteration": 1, "nodes.examples.max_tokens": LONG,
                "budget.tokens_in_flight": LONG, "budget.micro_batch_tokens": LONG, "pipeline.iterations": 1, "cluster.slots": 1,
                "checkpoint.copy": "none"}
        long |= self.four_heads("policy", max_position_embeddings=LONG, num_hidden_layers=8)
        predicted = {}
        for ranks in (1, 4):
            done = run("plan", "--ranks", ranks, "--format", "json", ROOT / "pipelines/sft.toml", *sets(**long, **pairs(4)))
            self.assertEqual(done.returncode, DONE, done.stderr)
            predicted[ranks] = json.loads(done.stdout)["predicted"]
        self.assertLess(predicted[4]["activation_bytes"], (1 / 4 + 0.05) * predicted[1]["activation_bytes"])
        limit = {"runtime.memory_gib": 1.05 * predicted[4]["total_bytes"] / 2**30,
                 "models.policy.activation_checkpointing": "none"}
        refused = run("plan", ROOT / "pipelines/sft.toml", *sets(**long, **limit))
        self.assertEqual(refused.returncode, REFUSED)
        folder = self.run_on(4, "sft.toml", **(long | limit | pairs(4)))
        self.assertEqual(len(self.lines_of(folder)), 1)


if __name__ == "__main__":
    unittest.main()
