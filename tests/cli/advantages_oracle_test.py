"""Advantages and KL of `rlhf-run try`, on random groups, against the formulas of the papers (advantage_formulas.py) and against
the expectations of the unit tests of NeMo-RL and SkyRL."""

import json
import math
import random
import unittest

import advantage_formulas as formulas
from support import DATA, DONE, Case, run, skip_or_fail


def repeated(values, lengths):
    return [[value] * length for value, length in zip(values, lengths)]


class Batch:
    """Random groups: sizes, lengths (some 0), scores, and action columns."""

    def __init__(self, seed, sizes=(4, 1, 8, 2, 5), scores=None, longest=6):
        self.random = random.Random(seed)
        self.sizes = list(sizes)
        scores = scores or (lambda r: round(r.uniform(-2, 3), 3))
        self.lengths = [self.random.randrange(longest) for _ in range(sum(sizes))]
        self.scores = [scores(self.random) for _ in self.lengths]

    def actions(self, low=-1.0, high=1.0):
        return [[round(self.random.uniform(low, high), 4) for _ in range(length)] for length in self.lengths]

    def masks(self):
        return [[float(self.random.random() < 0.7) for _ in range(length)] for length in self.lengths]

    def by_group(self, values):
        """Slices of one entry a sample."""
        start, slices = 0, []
        for size in self.sizes:
            slices.append(values[start:start + size])
            start += size
        return slices

    def each_group(self, formula):
        """formula(rewards of a group) repeated on the actions of its samples."""
        return repeated([value for rewards in self.by_group(self.scores) for value in formula(rewards)], self.lengths)

    def columns(self, **more):
        return {"score": self.scores, "rollout_logprobs": [[-1.0] * length for length in self.lengths], **more}


class OracleCase(Case):
    def try_one(self, what, columns, groups=None, **parameters):
        given = {"columns": columns} if groups is None else {"groups": groups, "columns": columns}
        words = [word for key, value in parameters.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        done = run("try", what, *words, stdin=json.dumps(given))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout)["columns"]

    def assert_near(self, got, expected, tolerance=2e-5):
        self.assertEqual(len(got), len(expected))
        for sample, (row, wanted) in enumerate(zip(got, expected)):
            self.assertEqual(len(row), len(wanted), f"sample {sample}")
            for t, (a, b) in enumerate(zip(row, wanted)):
                near = math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
                self.assertTrue(near, f"sample {sample}, action {t}: {a}, not {b}")

    def check_groups(self, what, formula, scores=None, sizes=(4, 1, 8, 2, 5, 3, 4, 6), **parameters):
        batch = Batch(sum(map(ord, what)), sizes=sizes, scores=scores)
        out = self.try_one(what, batch.columns(), batch.sizes, **parameters)
        self.assert_near(out["advantages"], batch.each_group(formula))


class GroupRelative(OracleCase):
    def test_grpo(self):
        self.check_groups("grpo", formulas.grpo)

    def test_dr_grpo(self):
        self.check_groups("grpo", lambda rewards: formulas.grpo(rewards, normalize=False), normalize_std=False)

    def test_grpo_with_the_other_conventions(self):
        self.check_groups("grpo", lambda rewards: formulas.grpo(rewards, epsilon=0.1, bessel=False, inside=True, lone="score"),
                          epsilon=0.1, std="biased", epsilon_placement="inside", lone_sample="score")

    def test_grpo_leave_one_out(self):
        self.check_groups("grpo", formulas.grpo_leave_one_out, baseline="leave_one_out")
        self.check_groups("grpo", formulas.grpo_leave_one_out, scores=lambda r: float(r.random() < 0.3), baseline="leave_one_out")

    def test_grpo_over_the_iteration(self):
        batch = Batch(7, sizes=(4, 3, 8, 2))
        deviation = formulas.std(batch.scores)
        out = self.try_one("grpo", batch.columns(), batch.sizes, std_over="iteration")
        self.assert_near(out["advantages"], batch.each_group(lambda rewards: formulas.grpo(rewards, deviation=deviation)))

    def test_grpo_with_rewards_of_steps(self):
        draw = random.Random(5)
        lengths = [draw.randrange(1, 7) for _ in range(9)]
        samples = [(length, {t: round(draw.uniform(-1, 1), 3) for t in range(length) if t == length - 1 or draw.random() < 0.3})
                   for length in lengths]
        column = [[ends.get(t, "nan") for t in range(length)] for length, ends in samples]
        expected = formulas.grpo_process(samples[:4]) + formulas.grpo_process(samples[4:])
        out = self.try_one("grpo", {"step_rewards": column}, [4, 5], supervision="process")
        self.assert_near(out["advantages"], expected)

    def test_gdpo(self):
        batch = Batch(11, sizes=(4, 1, 8, 2, 5, 3))
        other = [round(batch.random.uniform(0, 100), 2) for _ in batch.scores]
        groups = [list(zip(*scores)) for scores in zip(batch.by_group(batch.scores), batch.by_group(other))]
        actions = [[-1.0] * length for length in batch.lengths]
        out = self.try_one("gdpo", {"a": batch.scores, "b": other, "rollout_logprobs": actions}, batch.sizes, scores=["a", "b"],
                           weights=[1.0, 0.3])
        self.assert_near(out["advantages"], repeated(formulas.gdpo(groups, [1.0, 0.3]), batch.lengths))

    def test_rloo(self):
        self.check_groups("rloo", formulas.rloo)

    def test_maxrl(self):
        self.check_groups("maxrl", formulas.maxrl, scores=lambda r: float(r.random() < 0.4))
        self.check_groups("maxrl", formulas.maxrl, scores=lambda r: round(r.uniform(0, 3), 3))

    def test_opo(self):
        batch = Batch(1, sizes=(4, 1, 8, 2, 5, 3, 4, 6))
        expected = [value for rewards, lengths in zip(batch.by_group(batch.scores), batch.by_group(batch.lengths))
                    for value in formulas.opo(rewards, lengths)]
        out = self.try_one("opo", batch.columns(), batch.sizes)
        self.assert_near(out["advantages"], repeated(expected, batch.lengths))

    def test_pass_at_k_is_the_mean_over_all_subsets(self):
        for k in (1, 2, 4):
            self.check_groups("pass_at_k", lambda rewards: formulas.pass_at_k(rewards, k), sizes=(4, 8, 6, 5, 4, 7),
                              scores=lambda r: float(r.random() < 0.3), k=k)

    def test_token_rewards_count_as_their_sum(self):
        batch = Batch(3)
        rewards = batch.actions()
        batch.scores = [sum(sample) for sample in rewards]
        out = self.try_one("rloo", {"token_rewards": rewards, "score": [99.0] * len(rewards)}, batch.sizes)
        self.assert_near(out["advantages"], batch.each_group(formulas.rloo))


class PerAction(OracleCase):
    def test_gae(self):
        for seed, (discount, trust, masked, skip) in enumerate(((0.99, 0.95, "included", False), (0.9, 0.5, "skipped", True))):
            batch = Batch(seed)
            rewards, values, masks = batch.actions(), batch.actions(), batch.masks()
            expected = [formulas.gae(*sample, skip=skip)
                        for sample in zip(rewards, values, [discount] * len(masks), [trust] * len(masks), masks)]
            out = self.try_one("gae", {"token_rewards": rewards, "values": values, "mask": masks}, batch.sizes, discount=discount,
                               masked_actions=masked, **{"lambda": trust})
            self.assert_near(out["advantages"], [advantages for advantages, _ in expected])
            self.assert_near(out["returns"], [returns for _, returns in expected])

    def test_whitening(self):
        for seed, (bessel, epsilon, mean) in enumerate(((True, 1e-8, True), (False, 1e-4, True), (True, 1e-8, False))):
            batch = Batch(seed)
            rewards, masks = batch.actions(), batch.masks()
            zeros = [[0.0] * length for length in batch.lengths]
            out = self.try_one("gae", {"token_rewards": rewards, "values": zeros, "mask": masks}, batch.sizes, discount=0.0,
                               whiten="iteration", whiten_variance="bessel" if bessel else "biased", whiten_epsilon=epsilon,
                               whiten_mean=mean)
            self.assert_near(out["advantages"], formulas.whiten(rewards, masks, bessel, epsilon, mean))

    def reinforce(self, batch, rewards, masks, **parameters):
        returns = [formulas.reward_to_go(sample, parameters.get("discount", 1.0), mask) for sample, mask in zip(rewards, masks)]
        whitened = formulas.whiten(returns, masks)
        return returns, [[a if kept else 0.0 for a, kept in zip(sample, mask)] for sample, mask in zip(whitened, masks)]

    def test_reinforce_pp(self):
        for seed, discount in enumerate((1.0, 0.9)):
            batch = Batch(seed)
            rewards, masks = batch.actions(), batch.masks()
            returns, advantages = self.reinforce(batch, rewards, masks, discount=discount)
            out = self.try_one("reinforce_pp", {"token_rewards": rewards, "mask": masks}, batch.sizes, discount=discount)
            self.assert_near(out["returns"], returns)
            self.assert_near(out["advantages"], advantages)

    def test_reinforce_pp_with_the_mean_of_the_group(self):
        batch = Batch(4)
        means = [mean for group in batch.by_group(batch.scores) for mean in [sum(group) / len(group)] * len(group)]
        rewards = [[0.0] * (length - 1) + [score - mean] if length else []
                   for length, score, mean in zip(batch.lengths, batch.scores, means)]
        ones = [[1.0] * length for length in batch.lengths]
        returns, advantages = self.reinforce(batch, rewards, ones)
        out = self.try_one("reinforce_pp", batch.columns(), batch.sizes, baseline="group_mean")
        self.assert_near(out["returns"], returns)
        self.assert_near(out["advantages"], advantages)

    def test_remax(self):
        batch = Batch(6)
        rewards = batch.actions()
        baselines = [0.5, -1.0, 0.25, 2.0, 0.0]
        of_sample = [baseline for size, baseline in zip(batch.sizes, baselines) for _ in range(size)]
        expected = [[value - baseline for value in formulas.reward_to_go(sample)] for sample, baseline in zip(rewards, of_sample)]
        out = self.try_one("remax", {"token_rewards": rewards, "baseline_score": baselines}, batch.sizes)
        self.assert_near(out["advantages"], expected)
        out = self.try_one("remax", batch.columns(baseline_score=baselines), batch.sizes)
        self.assert_near(out["advantages"], repeated([score - baseline for score, baseline in zip(batch.scores, of_sample)],
                                                     batch.lengths))

    def test_distill(self):
        batch = Batch(8)
        teacher, policy = batch.actions(-5, 0), batch.actions(-5, 0)
        differences = [[a - b for a, b in zip(*rows)] for rows in zip(teacher, policy)]
        clipped = [[max(-1.5, min(1.5, d)) for d in row] for row in differences]
        columns = {"teacher_logprobs": teacher, "rollout_logprobs": policy}
        self.assert_near(self.try_one("distill", columns, batch.sizes)["advantages"], differences)
        out = self.try_one("distill", columns, batch.sizes, clip=1.5, discount=0.9)
        self.assert_near(out["advantages"], [formulas.reward_to_go(row, 0.9) for row in clipped])

    def test_kl(self):
        batch = Batch(9)
        policy, reference, masks = batch.actions(-6, 0), batch.actions(-6, 0), batch.masks()
        columns = {"logprobs": policy, "reference_logprobs": reference, "mask": masks}
        for estimator in ("k1", "k2", "k3", "abs"):
            for clamps in ({}, {"clamp_input": 2.0, "clamp_output": 1.5}):
                with self.subTest(estimator, **clamps):
                    expected = [[formulas.kl(p, r, estimator, **clamps) * m for p, r, m in zip(*rows)]
                                for rows in zip(policy, reference, masks)]
                    self.assert_near(self.try_one("kl", columns, batch.sizes, estimator=estimator, **clamps)["kl"], expected)

    def test_token_rewards_with_clamps_and_clipped_scores(self):
        batch = Batch(10)
        policy, reference = batch.actions(-6, 0), batch.actions(-6, 0)
        expected = [[-0.1 * formulas.kl(p, r, "k3", 2.0, 1.5) for p, r in zip(*rows)] for rows in zip(policy, reference)]
        for row, score in zip(expected, batch.scores):
            if row:
                row[-1] += max(-1.0, min(1.0, score))
        out = self.try_one("token_rewards", {"score": batch.scores, "rollout_logprobs": policy, "reference_logprobs": reference},
                           batch.sizes, kl_coefficient=0.1, kl_estimator="k3", clamp_input=2.0, clamp_output=1.5,
                           score_clip=[-1.0, 1.0])
        self.assert_near(out["token_rewards"], expected)


class AdaptiveKl(Case):
    def next(self, given, **parameters):
        words = [word for key, value in parameters.items() for word in ("--set", f"{key}={value}")]
        done = run("try", "adaptive_kl", *words, stdin=json.dumps(given))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout)["coefficient"]

    def test_follows_the_formula_within_and_beyond_its_bounds(self):
        for kl in (0.0, 6.6, 60.0):
            with self.subTest(kl=kl):
                got = self.next({"kl": kl, "samples": 256, "coefficient": 0.3}, initial=0.2, target=6, horizon=10000)
                self.assertAlmostEqual(got, formulas.adaptive_kl(0.3, kl, 256, 6, 10000), places=12)

    def test_starts_with_initial(self):
        self.assertAlmostEqual(self.next({"kl": 12, "samples": 1000}, initial=0.2, target=6, horizon=10000), 0.204)

    def test_answers_to_the_name_that_nodes_lists(self):
        given = '{"kl": 12, "samples": 1000}'
        listed = run("try", "kl_controller:adaptive_kl", stdin=given)
        self.assertEqual(listed.stdout, run("try", "adaptive_kl", stdin=given).stdout, listed.stderr)

    def test_a_fixed_one_stays(self):
        done = run("try", "fixed_kl", stdin='{"kl": 50, "samples": 10, "coefficient": 0.3}')
        self.assertEqual(json.loads(done.stdout), {"coefficient": 0.3})
        self.assert_refused(run("try", "fixed_kl", stdin='{"kl": 50, "samples": 10}'), '"coefficient" is missing')

    def test_refuses_what_it_does_not_understand(self):
        for given, text in (("[1]", "an object"), ('{"kl": 1}', '"samples" is missing'),
                            ('{"kl": "x", "samples": 1}', '"kl" must be'),
                            ('{"kl": 1, "samples": -1}', '"samples" must be'), ('{"kl": 1, "sample": 1}', '"sample"')):
            with self.subTest(given):
                self.assert_refused(run("try", "adaptive_kl", stdin=given), text)
        self.assert_refused(run("try", "adaptive_kl", "--set", "horizn=1", stdin="{}"), "did you mean horizon?")
        self.assert_refused(run("try", "adaptive_kl", "--set", "horizon=0", stdin="{}"), "horizon must be a number above 0")
        self.assert_refused(run("try", "adaptive_k", stdin="{}"), "did you mean adaptive_kl?")
        self.assert_refused(run("try", "adaptive_kl", "--set", "horizon=10", stdin='{"kl": 0, "samples": 100}'), "horizon")


class ReferenceNumbers(OracleCase):
    """Expectations of the unit tests of NeMo-RL and SkyRL."""

    def setUp(self):
        super().setUp()
        path = DATA / "numeric_refs/cases.json"
        if not path.exists():
            skip_or_fail(f"{path} is missing: the numbers of other projects are not checked")
        self.cases = {case["id"]: case for case in json.loads(path.read_text())["cases"]}

    def of_groups(self, name, what, **parameters):
        case = self.cases[name]
        sizes = [case["groups"].count(group) for group in sorted(set(case["groups"]))]
        out = self.try_one(what, {"score": case["rewards"], "tokens": [[1, 2]] * 4}, sizes, **parameters)
        self.assert_near(out["advantages"], [[value] for value in case["expect"]["advantages"]], 1e-5)

    def test_grpo_without_std(self):
        self.of_groups("grpo_no_std", "grpo", normalize_std=self.cases["grpo_no_std"]["norm_by_std"])

    def test_maxrl(self):
        self.of_groups("maxrl", "maxrl", epsilon=self.cases["maxrl"]["eps"])

    def test_gae_whitened_under_a_mask(self):
        case = self.cases["gae_whitened_masked"]
        columns = {column: [case[column]] for column in ("token_rewards", "values", "mask")}
        out = self.try_one("gae", columns, whiten="iteration", discount=case["gamma"], **{"lambda": case["lambda"]})
        self.assert_near(out["returns"], [case["expect"]["returns"]])
        self.assert_near(out["advantages"], [case["expect"]["advantages"]], 1e-4)

    def test_gae_that_skips_a_gap(self):
        case = self.cases["gae_gap_carry_forward"]
        rewards = [0.0] * (len(case["values"]) - 1) + [case["terminal_reward"]]
        parameters = {"discount": case["gamma"], "lambda": case["lambda"]}
        gap = self.try_one("gae", {"token_rewards": [rewards], "values": [case["values"]], "mask": [case["mask"]]},
                           masked_actions="skipped", **parameters)["advantages"][0]
        kept = [t for t, mask in enumerate(case["mask"]) if mask]
        columns = {"token_rewards": [[rewards[t] for t in kept]], "values": [[case["values"][t] for t in kept]]}
        without = self.try_one("gae", columns, **parameters)["advantages"][0]
        self.assert_near([[gap[t] for t in kept]], [without])
        self.assertEqual([gap[t] for t, mask in enumerate(case["mask"]) if not mask], [0])

    def test_reinforce_pp_starts_again_at_a_masked_action(self):
        case = self.cases["reinforcepp_reset_after_eos"]
        columns = {"token_rewards": [case["token_rewards"]], "mask": [case["mask"]]}
        out = self.try_one("reinforce_pp", columns, discount=case["gamma"])
        self.assert_near(out["returns"], [case["expect"]["returns"]], case["tol"])
        self.assertEqual(out["advantages"][0][2], 0)

    def test_kl_without_clamps(self):
        case = self.cases["kl_unclamped"]
        for estimator, expected in case["expect"].items():
            out = self.try_one("kl", {"logprobs": [case["logprobs"]], "reference_logprobs": [case["ref"]]}, estimator=estimator)
            self.assert_near(out["kl"], [expected], case["rtol"])

    def test_kl_under_a_mask(self):
        case = self.cases["kl_nan_masked"]
        columns = {"logprobs": [case["logprobs"]], "reference_logprobs": [case["ref"]], "mask": [case["mask"]]}
        for estimator in ("k1", "k2", "k3", "abs"):
            got = self.try_one("kl", columns, estimator=estimator)["kl"][0]
            expected = [mask * formulas.kl(p, r, estimator) if mask else 0.0
                        for p, r, mask in zip(case["logprobs"], [0.1, 0.2, 0.4, 0.0], case["mask"])]
            self.assert_near([got], [expected])
            self.assertEqual(got[-1], 0)


if __name__ == "__main__":
    unittest.main()
