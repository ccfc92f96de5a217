"""`rlhf-run try`: one node or objective, on columns given as JSON, against numbers worked out by hand or by other projects."""

import json
import math
import unittest

from support import DATA, DONE, Case, run, skip_or_fail


def try_one(what, columns, groups=None, **parameters):
    given = {"columns": columns} if groups is None else {"groups": groups, "columns": columns}
    words = [word for key, value in parameters.items()
             for word in ("--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}")]
    return run("try", what, *words, stdin=json.dumps(given))


class TryCase(Case):
    def try_one(self, what, columns, groups=None, **parameters):
        done = try_one(what, columns, groups, **parameters)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout)

    def assert_near(self, got, expected, tolerance=1e-5):
        """Nested lists of numbers; "nan" equals "nan"."""
        self.assertEqual(type(got) is list, type(expected) is list, f"{got} and {expected}")
        if type(expected) is list:
            self.assertEqual(len(got), len(expected), f"{got} and {expected}")
            for a, b in zip(got, expected):
                self.assert_near(a, b, tolerance)
        elif isinstance(expected, str):
            self.assertEqual(got, expected)
        else:
            self.assertLessEqual(abs(got - expected), tolerance * max(1, abs(expected)))


def reference_cases():
    path = DATA / "numeric_refs/cases.json"
    if not path.exists():
        skip_or_fail(f"{path} is missing: the numbers of other projects are not checked")
    return {case["id"]: case for case in json.loads(path.read_text())["cases"]}


class ReferenceNumbers(TryCase):
    """Expectations of the unit tests of NeMo-RL and SkyRL."""

    def setUp(self):
        super().setUp()
        self.cases = reference_cases()

    def test_gae(self):
        for name in ("gae_td_lambda0", "gae_returns_g1_l1"):
            with self.subTest(name):
                case = self.cases[name]
                out = self.try_one("gae", {"token_rewards": [case["token_rewards"]], "values": [case["values"]]},
                                   discount=case["gamma"], **{"lambda": case["lambda"]})
                for column, numbers in case["expect"].items():
                    self.assert_near(out["columns"][column], [numbers])

    def test_gae_does_not_notice_text_that_is_no_action(self):
        case = self.cases["gae_gap_carry_forward"]  # the gap has no entry in action columns
        values = [value for value, kept in zip(case["values"], case["mask"]) if kept]
        rewards = [0.0] * (len(values) - 1) + [case["terminal_reward"]]
        gamma, trust = case["gamma"], case["lambda"]
        expected, advantage, after = [], 0.0, 0.0
        for reward, value in zip(rewards[::-1], values[::-1]):
            advantage = reward + gamma * after - value + gamma * trust * advantage
            expected.insert(0, advantage)
            after = value
        out = self.try_one("gae", {"token_rewards": [rewards], "values": [values]}, discount=gamma, **{"lambda": trust})
        self.assert_near(out["columns"]["advantages"], [expected])

    def test_ppo_clip(self):
        for name in ("ppo_clip", "ppo_dual_clip"):
            with self.subTest(name):
                case = self.cases[name]
                parameters = {"dual_clip": case["clip_c"]} if "clip_c" in case else {}
                columns = {"logprobs": [case["curr"]], "old_logprobs": [case["prev"]], "advantages": [case["adv"]]}
                out = self.try_one("objective:ppo_clip", columns, clip_low=case["clip"][0], clip_high=case["clip"][1],
                                   **parameters)
                self.assertEqual(out["count"], 3)
                self.assert_near(out["loss"], case["expect"]["loss"], 1e-3)
                self.assert_near(out["loss_sum"], sum(case["expect"]["per_token"]), 1e-3)

    def test_kl_estimators(self):
        case = self.cases["kl_unclamped"]
        columns = {"score": [0], "rollout_logprobs": [case["logprobs"]], "reference_logprobs": [case["ref"]]}
        for estimator, expected in case["expect"].items():
            with self.subTest(estimator):
                out = self.try_one("token_rewards", columns, kl_coefficient=1.0, kl_estimator=json.dumps(estimator))
                self.assert_near(out["columns"]["token_rewards"], [[-number for number in expected]], 1e-3)


    def test_a_node_that_writes_no_column_shows_its_metrics(self):
        columns = {"score": [1, 0, 0, 1], "response": ["4", "5", "6", "4"]}
        out = self.try_one("evaluate_samples", columns, groups=[4], k=[1, 2])
        self.assert_near(out["metrics"]["reward/pass_at_1"], 0.5)
        self.assert_near(out["metrics"]["reward/pass_at_2"], 5 / 6)


class Preferences(TryCase):
    """-log sigmoid of 0.5 times the difference of the log ratios; worked out with PyTorch."""

    def test_dpo_makes_pairs_of_best_and_worst_and_gives_the_gradient_of_each_action(self):
        columns = {"logprobs": [[-1, -1], [-9], [-3]], "reference_logprobs": [[-2, -0.5], [0], [-2]], "score": [1, 0.5, 0]}
        out = self.try_one("objective:dpo", columns, beta=0.5)
        self.assertEqual(out["count"], 1)
        self.assert_near(out["loss"], 0.3868710061)
        slope = 0.5 / (1 + math.exp(0.75))  # (1 - sigmoid) * beta
        self.assert_near(out["gradient"]["logprobs"], [[-slope, -slope], [0], [slope]])
        self.assert_near(out["metrics"]["preference/reward_margin"], 0.75)

    def test_a_masked_action_does_not_count(self):
        columns = {"logprobs": [[-2, None], [-3]], "reference_logprobs": [[-2.5, 0], [-2]], "score": [1, 0],
                   "mask": [[1, 0], [1]]}
        out = self.try_one("objective:dpo", columns, beta=0.5)
        self.assert_near(out["loss"], 0.3868710061)
        self.assert_near(out["gradient"]["logprobs"][0][1], 0)

    def test_without_pairs_there_is_no_loss(self):
        out = self.try_one("objective:ipo", {"logprobs": [[-1], [-2]], "reference_logprobs": [[-1], [-2]], "score": [1, 1]})
        self.assertEqual((out["count"], out["loss"], out["metrics"]), (0, 0, {}))

    def test_simpo_needs_no_reference(self):
        out = self.try_one("objective:simpo", {"logprobs": [[-0.5, -0.5], [-1.5]], "score": [1, 0]}, beta=2.0, gamma=1.0)
        self.assert_near(out["loss"], 0.3132616875)


class EvaluateSamples(TryCase):
    def test_it_records_only(self):
        out = self.try_one("evaluate_samples", {"response": ["4", "5"], "score": [1, 0]})
        self.assertEqual(out["columns"], {})


class Gae(TryCase):
    def test_samples_are_independent_and_may_be_empty(self):
        columns = {"token_rewards": [[0, 1], [], [4], [0, 0, 2]], "values": [[1, 1], [], [1], [0, 1, 0]]}
        out = self.try_one("gae", columns, groups=[1, 3], discount=0.5, **{"lambda": 1.0})
        self.assert_near(out["columns"]["returns"], [[0.5, 1], [], [4], [0.5, 1, 2]])
        self.assert_near(out["columns"]["advantages"], [[-0.5, 0], [], [3], [0.5, 0, 2]])

    def test_lengths_that_no_column_tells(self):
        done = run("try", "grpo", stdin='{"groups": [2], "columns": {"score": [1, 0]}}')
        self.assert_refused(done, "'advantages' has a number for each action, and no column says how many actions a sample has")

    def test_no_action_at_all(self):
        out = self.try_one("gae", {"token_rewards": [[], []], "values": [[], []]}, whiten='"iteration"')
        self.assertEqual(out["columns"], {"advantages": [[], []], "returns": [[], []]})

    def test_rewards_that_are_not_finite(self):
        columns = {"token_rewards": [[0, None], [1]], "values": [[0, 0], [0]]}
        done = run("try", "gae", stdin=json.dumps({"columns": columns}))
        self.assert_refused(done, "column 'token_rewards' is nan for action 1 of sample 0 of group 0")
        columns = {"score": [1, "nan"], "rollout_logprobs": [[-1], [-1]]}
        for node in ("grpo", "rloo", "maxrl", "opo", "pass_at_k"):
            done = run("try", node, stdin=json.dumps({"groups": [2], "columns": columns}))
            self.assert_refused(done, "column 'score' is nan for sample 1 of group 0")

    def test_whitening_has_mean_zero_and_variance_one_over_all_actions(self):
        out = self.try_one("gae", {"token_rewards": [[1, 2], [6], [3, 4, 5]], "values": [[0, 0], [0], [0, 0, 0]]}, groups=[1, 2],
                           whiten='"iteration"', discount=0.0, **{"lambda": 0.0})
        flat = [number for sample in out["columns"]["advantages"] for number in sample]
        self.assert_near(sum(flat) / 6, 0.0)
        self.assert_near(sum(number * number for number in flat) / 6, 1.0, 0.21)  # population or sample variance
        self.assertEqual([flat.index(number) for number in sorted(flat)], [0, 1, 3, 4, 5, 2])
        self.assert_near(out["columns"]["returns"], [[1, 2], [6], [3, 4, 5]])


class TokenRewards(TryCase):
    def test_score_stands_on_the_last_action_and_the_penalty_on_every_one(self):
        columns = {"score": [1, 5, 2], "rollout_logprobs": [[-1, -1], [], [-2]], "reference_logprobs": [[-2, -1], [], [-1]]}
        out = self.try_one("token_rewards", columns, groups=[2, 1], kl_coefficient=0.5)
        self.assert_near(out["columns"]["token_rewards"], [[-0.5, 1], [], [2.5]])

    def test_without_a_penalty_no_reference_is_needed(self):
        out = self.try_one("token_rewards", {"score": [1, 2], "rollout_logprobs": [[-1, -1], [-2]]})
        self.assert_near(out["columns"]["token_rewards"], [[0, 1], [2]])


class ExactMatch(TryCase):
    def test_every_sample_is_compared_with_the_label_of_its_group(self):
        out = self.try_one("exact_match", {"response": ["4", "5", "5"], "label": ["4", "5"]}, groups=[1, 2])
        self.assertEqual(out["columns"]["score"], [1, 1, 1])
        out = self.try_one("exact_match", {"response": ["4", "5", "5"], "label": ["4", "5"]}, groups=[2, 1])
        self.assertEqual(out["columns"]["score"], [1, 0, 1])

    def test_text_is_compared_to_the_letter_but_for_blanks_around_it_unless_it_is_normalised(self):
        columns = {"response": ["42", " 42\n", "4 2", "42.0", "$42", "-42"], "label": ["42"]}
        self.assertEqual(self.try_one("exact_match", columns)["columns"]["score"], [1, 1, 0, 0, 0, 0])
        self.assertEqual(self.try_one("exact_match", columns, normalize='"number"')["columns"]["score"], [1, 1, 0, 1, 1, 0])

    def test_the_last_match_of_the_expression_counts(self):
        columns = {"response": ["#### 3 no, #### 4", "#### 4 no, #### 3", "4"], "label": ["so it is #### 4"]}
        out = self.try_one("exact_match", columns, extract=r"'#### (\d+)'")
        self.assertEqual(out["columns"]["score"], [1, 0, 0])


class Scores(TryCase):
    def test_columns_that_parameters_name_can_be_given(self):
        out = self.try_one("combine_scores", {"right": [1, 0], "form": [1, 1]}, scores=["right", "form"], weights=[1.0, 0.5])
        self.assert_near(out["columns"]["score"], [1.5, 0.5])

    def test_backslashes_reach_the_scorer(self):
        columns = {"response": ["so \\boxed{\\frac{3}{4}}", "3/5"], "label": ["0.75"]}
        self.assertEqual(self.try_one("numeric_match", columns)["columns"]["score"], [1, 0])

    def test_lengths_come_from_any_column_of_actions(self):
        out = self.try_one("length_penalty", {"rollout_logprobs": [[-1], [-1, -1, -1]]}, max_tokens=4, cache_tokens=2)
        self.assert_near(out["columns"]["length_score"], [0, -0.5])


class Objectives(TryCase):
    def ppo(self, logprobs, old, advantages, **parameters):
        columns = {"logprobs": [logprobs], "old_logprobs": [old], "advantages": [advantages]}
        return self.try_one("objective:ppo_clip", columns, **parameters)

    def test_ppo_clip_has_a_gradient_only_where_the_clip_leaves_it(self):
        up, down = math.log(1.5), math.log(0.5)
        out = self.ppo([up, up, down, down], [0, 0, 0, 0], [1, -1, 1, -1])
        # d(-ratio * advantage) / d logprob = -ratio * advantage, over four actions
        self.assert_near(out["gradient"]["logprobs"], [[0, 1.5 / 4, -0.5 / 4, 0]])
        self.assert_near(out["loss"], (-1.2 + 1.5 - 0.5 + 0.8) / 4)

    def test_dual_clip_bounds_the_loss_of_a_bad_action(self):
        up = math.log(10)
        self.assert_near(self.ppo([up], [0], [-2])["loss"], 20)
        bounded = self.ppo([up], [0], [-2], dual_clip=3.0)
        self.assert_near(bounded["loss"], 6)
        self.assert_near(bounded["gradient"]["logprobs"], [[0]])

    def test_gradient_agrees_with_differences_of_the_loss(self):
        logprobs, old, advantages, step = [-0.9, -1.1, -0.7], [-1, -1, -1], [0.7, -0.4, 0.3], 1e-3
        gradient = self.ppo(logprobs, old, advantages)["gradient"]["logprobs"][0]
        for i in range(3):
            moved = [logprobs[:i] + [logprobs[i] + h] + logprobs[i + 1:] for h in (step, -step)]
            losses = [self.ppo(numbers, old, advantages)["loss"] for numbers in moved]
            self.assert_near(gradient[i], (losses[0] - losses[1]) / (2 * step), 1e-4)

    def test_value_clip_takes_the_worse_of_both(self):
        columns = {"values": [[1, 2], [0.1]], "old_values": [[0, 2], [0]], "returns": [[3, 1], [0]]}
        for name in ("objective:value_clip", "value_objective:value_clip"):
            out = self.try_one(name, columns, clip=0.2)
            # |0.2 - 3| > |1 - 3|: the clipped error counts and has no gradient
            self.assert_near(out["loss_sum"], (2.8**2 + 1 + 0.01) / 2)
            self.assert_near(out["gradient"]["values"], [[0, 1 / 3], [0.1 / 3]])

    def test_no_action(self):
        for what, columns in (("ppo_clip", ("logprobs", "old_logprobs", "advantages")),
                              ("value_clip", ("values", "old_values", "returns"))):
            out = self.try_one("objective:" + what, {column: [[], []] for column in columns})
            self.assertEqual((out["loss"], out["count"]), (0, 0), out)

    def test_nan_is_shown(self):
        self.assertEqual(self.ppo([None, 0], [0, 0], [1, 1])["loss"], "nan")


class WrongInput(TryCase):
    def refuse(self, what, stdin, *texts, words=(), problems=1):
        text = stdin if isinstance(stdin, str) else json.dumps(stdin)
        self.assert_refused(run("try", what, *words, stdin=text), *texts, problems=problems)

    def test_unknown_names(self):
        self.refuse("gea", "{}", "did you mean gae?")
        self.refuse("value_clip", "{}", "objective:value_clip")
        self.refuse("objective:ppo_clp", "{}", "did you mean objective:ppo_clip?")

    def test_parameters(self):
        self.refuse("gae", "{}", "--set:1:1: error: lamda", "did you mean lambda?", words=("--set", "lamda=1"))
        self.refuse("gae", "{}", "--set:1:8: error: lambda must be a number from 0 to 1", words=("--set", "lambda=2"))
        self.refuse("gae", "{}", "error: no = in", words=("--set", "lambda"))

    def test_a_node_that_needs_a_model(self):
        self.refuse("values", "{}", "model")

    def test_no_json(self):
        for text in ("", "{", '{"columns":', "nonsense", "[1]", "{}", "[" * 100000):
            with self.subTest(text[:20]):
                self.refuse("gae", text)

    def test_columns_that_do_not_fit(self):
        rewards = {"token_rewards": [[1, 2]]}
        for columns, texts in (
                (rewards, ["reads column 'values'", "given are token_rewards"]),
                ({**rewards, "valuess": [[1, 2]]}, ["no column is called 'valuess'", "did you mean values?"]),
                ({**rewards, "values": [[1]]}, ["column 'values', sample 0: 1 action, but column 'token_rewards' has 2"]),
                ({**rewards, "values": [[1, 2], [3]]}, ["column 'values' has 2 samples, but column 'token_rewards' has 1"]),
                ({**rewards, "values": [[1, "x"]]}, ["column 'values', sample 0, entry 1: a number"]),
                ({**rewards, "values": [[1, 1e300]]}, ["column 'values', sample 0, entry 1: a number"]),
                ({**rewards, "values": [3]}, ["column 'values', sample 0: a list of actions is expected"]),
                ({**rewards, "values": 3}, ["column 'values' must be a list"])):
            with self.subTest(columns):
                self.refuse("gae", {"columns": columns}, *texts)

    def test_groups_that_do_not_fit(self):
        columns = {"token_rewards": [[1], [2]], "values": [[1], [2]]}
        for groups in ([1], [3], [-1, 3], "two", [1.5], [1, 1, 1]):
            with self.subTest(groups=groups):
                self.refuse("gae", {"groups": groups, "columns": columns}, "groups")
        self.refuse("exact_match", {"groups": [1, 1], "columns": {"response": ["a", "b"], "label": ["a"]}},
                    "column 'label' has 1 value, but there are 2 groups")


if __name__ == "__main__":
    unittest.main()
