"""A run: what it leaves in its folder, and what may and may not change its numbers."""

import json
import re
import unittest

from support import MODEL, PPO, ROOT, Case, read_safetensors, repeatable, run, sets

DEMANDED = {"iteration", "policy_version", "policy_lag", "data/samples", "rollout/sampled_tokens", "reward/score_mean",
            "reward/score_std", "reference/kl_mean", "policy/loss", "value/loss", "policy/grad_norm", "time/rollout_seconds",
            "time/train_seconds", "time/iteration_seconds", "time/overlap_seconds", "engine/tokens_in_flight_max",
            "memory/kv_used_bytes_max", "memory/column_bytes_max", "memory/resident_bytes"}

# Nothing waits for the whole iteration, and the optimizer steps once.
NO_BARRIER = {"nodes.advantages.whiten": "none", "nodes.train.mini_batches": 1}


class RunFolder(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = RunFolder("setUp")
        Case.setUp(cls.shared)
        cls.addClassCleanup(cls.shared.doCleanups)
        cls.finished = cls.shared.run_ppo()

    def test_a_prefix_stands_before_all_metrics_of_its_node_and_changes_nothing_else(self):
        plain = self.run_ppo("plain")
        prefixed = self.run_ppo("prefixed", **{"nodes.train.metrics_prefix": "second"})
        for before, after in zip(plain.metrics, prefixed.metrics, strict=True):
            self.assertEqual(after["second/policy/loss"], before["policy/loss"])
            self.assertNotIn("policy/loss", after)
            self.assertEqual(after["reward/score_mean"], before["reward/score_mean"])
        self.assertEqual(prefixed.weights("actor"), plain.weights("actor"))

    def test_holds_the_files_that_are_promised(self):
        for name in ("pipeline.toml", "pipeline.dot", "metrics.jsonl", "trace.json"):
            self.assertGreater((self.finished.folder / name).stat().st_size, 0, name)
        self.assertIn("digraph", (self.finished.folder / "pipeline.dot").read_text())

    def test_metrics_are_all_there_in_each_iteration(self):
        metrics = self.finished.metrics
        self.assertEqual([row["iteration"] for row in metrics], [0, 1])
        for row in metrics:
            self.assertEqual(DEMANDED - set(row), set())
            self.assertEqual([key for key in DEMANDED if row[key] is None], [])

    def test_metrics_count_each_sample_once(self):
        for row in self.finished.metrics:
            self.assertEqual(row["data/samples"], 16 * 4)
            self.assertGreaterEqual(row["rollout/sampled_tokens"], row["data/samples"])
            self.assertLessEqual(row["rollout/sampled_tokens"], row["data/samples"] * 6)
            self.assertAlmostEqual(row["rollout/response_length_mean"], row["rollout/sampled_tokens"] / row["data/samples"])

    def test_tokens_in_flight_stay_within_the_budget(self):
        for row in self.finished.metrics:
            self.assertLessEqual(row["engine/tokens_in_flight_max"], 8448)
            self.assertGreaterEqual(row["engine/tokens_in_flight_max"], row["rollout/sampled_tokens"])

    def test_checkpoints_are_hugging_face_folders(self):
        start = read_safetensors(MODEL / "model.safetensors")
        for model in ("actor", "critic"):
            folder = self.finished.folder / "checkpoint" / model
            config = json.loads((folder / "config.json").read_text())
            self.assertEqual(config["model_type"], "llama")
            self.assertTrue((folder / "tokenizer.json").is_file())
        actor = self.finished.weights("actor")
        self.assertEqual({name: entry[:2] for name, entry in actor.items()}, {name: entry[:2] for name, entry in start.items()})
        self.assertNotEqual(actor, start, "the actor was not trained")

    def test_a_checkpoint_is_evaluated_as_any_model_folder(self):
        done = run("run", ROOT / "pipelines/evaluate.toml", "--run-dir", self.folder / "evaluation", *sets(**{
            "models.policy.checkpoint": str(self.finished.folder / "checkpoint/actor"),
            "nodes.prompts.groups_per_iteration": 20}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len((self.folder / "evaluation/samples.jsonl").read_text().splitlines()), 20)

    def test_its_pipeline_gives_the_same_numbers_again(self):
        again = run("run", self.finished.folder / "pipeline.toml", "--run-dir", self.folder / "again")
        self.assertEqual(again.returncode, 0, again.stderr)
        lines = (self.folder / "again/metrics.jsonl").read_text().splitlines()
        self.assertEqual(repeatable(map(json.loads, lines)), repeatable(self.finished.metrics))

    def test_paths_of_its_pipeline_mean_the_same_elsewhere(self):
        """Those within tables too: a run folder has a copy of the pipeline."""
        pipeline = ROOT / "examples/07_calculator/calculator_process.toml"
        shown = run("plan", pipeline, "--config")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(f'folder = "{pipeline.parent}/"', shown.stdout)
        (self.folder / "copy.toml").write_text(shown.stdout)
        again = run("plan", self.folder / "copy.toml", "--config")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(f'folder = "{pipeline.parent}/"', again.stdout)

    def test_trace_has_a_named_row_for_each_executor(self):
        names = {event["tid"]: event["args"]["name"] for event in self.finished.trace if event["name"] == "thread_name"}
        self.assertEqual(sorted(names.values()), ["cpu", "cpu:1"])
        slices = [event for event in self.finished.trace if event["ph"] == "X"]
        self.assertEqual({event["tid"] for event in slices}, set(names))
        self.assertEqual({names[event["tid"]] for event in slices if event["name"] == "generate"}, {"cpu:1"})
        self.assertEqual({names[event["tid"]] for event in slices if event["name"] == "train"}, {"cpu"})

    def test_trace_slices_of_an_executor_do_not_overlap(self):
        slices = [event for event in self.finished.trace if event["ph"] == "X"]
        self.assertLessEqual({"generate", "score", "reference", "values", "rewards", "advantages", "train"},
                             {event["name"] for event in slices})
        for event in slices:
            self.assertIn(event["args"]["iteration"], (0, 1))
            self.assertGreaterEqual(event["args"]["tokens"], 0)
            self.assertGreaterEqual(event["dur"], 0)
        for executor in {event["tid"] for event in slices}:
            row = sorted((event["ts"], event["ts"] + event["dur"]) for event in slices if event["tid"] == executor)
            for (_, end), (begin, _) in zip(row, row[1:]):
                self.assertLessEqual(round(end, 3), begin)  # the file has three decimals

    def test_one_line_an_iteration_where_nobody_watches(self):
        lines = self.finished.stdout.splitlines()
        self.assertRegex(lines[0], r"^ppo  iteration 1/2   score \d\.\d{3}   held_out \d\.\d{3}   KL -?\d+\.\d+   \S+ tok/s$")
        self.assertRegex(lines[1], r"^ppo  iteration 2/2 ")
        self.assertRegex(lines[2], r"^ppo finished: 2 iterations in ")
        self.assertNotIn("\r", self.finished.stdout)
        self.assertNotIn("\033", self.finished.stdout)

    def test_summary_agrees_with_the_metrics(self):
        metrics = self.finished.metrics
        sampled = sum(row["rollout/sampled_tokens"] for row in metrics)
        self.assertRegex(self.finished.stdout, rf"samples +128 of \d+ tokens in all, {sampled} sampled")
        first, last = (row["reward/score_mean"] for row in metrics)
        self.assertIn(f"  score       {first:.3f} -> {last:.3f} (the first and the last iteration)\n", self.finished.stdout)
        self.assertIn(str(self.finished.folder), self.finished.stdout)


    def test_data_that_end_before_the_iterations_do_are_told(self):
        data = self.write("three.jsonl", '{"prompt": "1+1=", "label": "2"}\n' * 3)
        done = run("run", PPO, "--run-dir", self.folder / "short",
                   *sets(**{"nodes.prompts.path": str(data), "nodes.prompts.epochs": 1, "nodes.prompts.groups_per_iteration": 1,
                            "pipeline.iterations": 5}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("finished: 3 iterations", done.stdout)
        self.assertIn("  stopped     the data have ended: 5 iterations were asked for\n", done.stdout)


class SameNumbers(Case):
    def assert_close(self, a, b, keys, relative):
        for key in keys:
            self.assertLessEqual(abs(a[key] - b[key]), relative * max(abs(a[key]), abs(b[key]), 1e-6),
                                 f"{key}: {a[key]} and {b[key]}")

    def test_two_runs_of_one_seed_are_equal_to_the_bit(self):
        first, second = self.run_ppo("first", anew=True), self.run_ppo("second", anew=True)
        self.assertEqual(repeatable(first.metrics), repeatable(second.metrics))
        for model in ("actor", "critic"):
            path = f"checkpoint/{model}/model.safetensors"
            self.assertEqual((first.folder / path).read_bytes(), (second.folder / path).read_bytes(), path)

    def test_another_seed_gives_another_run(self):
        first, second = self.run_ppo("first"), self.run_ppo("second", **{"pipeline.seed": 2})
        self.assertNotEqual(first.metrics[0]["policy/loss"], second.metrics[0]["policy/loss"])

    def test_losses_do_not_depend_on_the_size_of_the_micro_batches(self):
        small = self.run_ppo("small", **NO_BARRIER, **{"budget.micro_batch_tokens": 512})
        large = self.run_ppo("large", **NO_BARRIER, **{"budget.micro_batch_tokens": 4096})
        self.assert_close(small.metrics[0], large.metrics[0],
                          ("policy/loss", "value/loss", "policy/grad_norm", "value/grad_norm"), 1e-5)
        self.assertEqual(small.metrics[0]["reward/score_mean"], large.metrics[0]["reward/score_mean"])

    def test_one_executor_gives_what_two_give(self):
        one = self.run_ppo("one", **{"nodes.generate.on": "cpu"})
        two = self.run_ppo("two", **{"nodes.generate.on": "cpu:1"})
        a, b = repeatable(one.metrics)[0], repeatable(two.metrics)[0]
        self.assertEqual(set(a), set(b))
        self.assertEqual((a["reward/score_mean"], a["rollout/sampled_tokens"]),
                         (b["reward/score_mean"], b["rollout/sampled_tokens"]))
        self.assert_close(a, b, ("policy/loss", "value/loss", "policy/grad_norm", "value/grad_norm", "advantage/return_mean"),
                          1e-5)

    def test_a_learning_rate_of_zero_changes_no_weight(self):
        still = self.run_ppo(**{"models.actor.optimizer.learning_rate": 0.0, "models.critic.optimizer.learning_rate": 0.0})
        self.assertEqual(still.weights("actor"), read_safetensors(MODEL / "model.safetensors"))
        first, second = still.metrics
        self.assertLess(abs(second["reference/kl_mean"]), 1e-5)
        self.assertEqual(first["policy_version"], 0)
        self.assertEqual(second["policy_version"], 1)

    def test_the_model_sees_nothing_of_the_label(self):
        rows = [json.loads(line) for line in (ROOT / "pipelines/data/arithmetic_train.jsonl").read_text().splitlines()[:16]]
        labels = [row["label"] for row in rows]
        runs = []
        for name, order in (("right", labels), ("permuted", labels[1:] + labels[:1])):
            lines = "".join(json.dumps({"prompt": row["prompt"], "label": label}) + "\n" for row, label in zip(rows, order))
            data = self.write(name + ".jsonl", lines)
            runs.append(self.run_ppo(name, pipeline=self.saving_pipeline(),
                                     **{"nodes.prompts.path": str(data), "pipeline.iterations": 1}))
        right, permuted = runs
        self.assertEqual([row["response"] for row in right.samples], [row["response"] for row in permuted.samples])
        self.assertNotEqual(right.metrics[0]["reward/score_mean"], permuted.metrics[0]["reward/score_mean"])

    def test_samples_are_scored_against_the_label_of_their_prompt(self):
        finished = self.run_ppo(pipeline=self.saving_pipeline(), **{"pipeline.iterations": 1})
        truth = {}
        for line in (ROOT / "pipelines/data/arithmetic_train.jsonl").read_text().splitlines():
            row = json.loads(line)
            truth[row["prompt"]] = row["label"]
        samples = finished.samples
        self.assertEqual(len(samples), 64)
        for row in samples:
            a, b = map(int, re.fullmatch(r"(\d+)\+(\d+)=", row["prompt"]).groups())
            self.assertEqual(truth[row["prompt"]], str(a + b))
            self.assertEqual(row["score"], 1 if row["response"] == str(a + b) else 0, row)
        self.assertAlmostEqual(finished.metrics[0]["reward/score_mean"], sum(row["score"] for row in samples) / 64)


class BoundedMemory(Case):
    def test_half_the_tokens_in_flight_need_less_memory(self):
        runs = [self.run_ppo(f"run{tokens}", **NO_BARRIER, **{
            "budget.tokens_in_flight": tokens, "budget.micro_batch_tokens": 256, "nodes.prompts.groups_per_iteration": 64,
            "pipeline.iterations": 1}).metrics[0] for tokens in (2048, 1024)]
        whole, half = runs
        for row, tokens in ((whole, 2048), (half, 1024)):
            self.assertLessEqual(row["engine/tokens_in_flight_max"], tokens)
            self.assertGreater(row["engine/tokens_in_flight_max"], tokens // 2, "the budget does not bind")
        self.assertLess(half["memory/kv_bytes_max"] + half["memory/column_bytes_max"],
                        whole["memory/kv_bytes_max"] + whole["memory/column_bytes_max"])
        self.assertEqual(half["reward/score_mean"], whole["reward/score_mean"])


class PolicyLag(Case):
    def test_an_iteration_samples_with_the_version_that_the_lag_allows(self):
        for lag in (1, 2):
            with self.subTest(lag=lag):
                finished = self.run_ppo(f"lag{lag}", **{"schedule.policy_lag": lag, "pipeline.iterations": 4})
                versions = [row["policy_version"] for row in finished.metrics]
                self.assertEqual(versions, [max(0, i - lag) for i in range(4)])
                self.assertEqual([row["policy_lag"] for row in finished.metrics],
                                 [i - version for i, version in enumerate(versions)])

    def test_a_run_with_lag_repeats_to_the_bit(self):
        settings = {"schedule.policy_lag": 1, "pipeline.iterations": 3}
        first, second = (self.run_ppo(name, anew=True, **settings) for name in ("first", "second"))
        self.assertEqual(repeatable(first.metrics), repeatable(second.metrics))

    def test_lag_one_samples_the_first_two_iterations_with_the_starting_weights(self):
        on_policy = self.run_ppo("lag0", pipeline=self.saving_pipeline(), **{"models.actor.optimizer.learning_rate": 0.01})
        lagging = self.run_ppo("lag1", pipeline=self.saving_pipeline(),
                               **{"models.actor.optimizer.learning_rate": 0.01, "schedule.policy_lag": 1})
        still = self.run_ppo("still", pipeline=self.saving_pipeline(), **{"models.actor.optimizer.learning_rate": 0.0})
        responses = [[row["response"] for row in finished.samples] for finished in (on_policy, lagging, still)]
        self.assertEqual(responses[1], responses[2])
        self.assertNotEqual(responses[0], responses[2])


if __name__ == "__main__":
    unittest.main()
