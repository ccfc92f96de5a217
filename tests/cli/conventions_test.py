"""The conventions of four systems against their formulas: groups, the variance of whitening, averages, the KL in the loss, clamps
and importance weights. presets_test.py has the rest."""

import math
import unittest

import formulas
from formulas import SYSTEMS
from presets_test import ADVANTAGES, LOGPROBS, OLD, REFERENCES, REWARDS, VALUES, PresetCase

GROUPS = ([1.0, 0.0, 0.0, 1.0], [0.25, 0.5, 1.5, -2.0, 3.0])
FAR = [[-0.5, -30.0, -0.25], [-26.0], [-0.1, -14.0]]  # as LOGPROBS against REFERENCES: differences beyond every clamp
ROLLOUT = [[-1.4, -1.1, -1.5], [-2.4], [-0.3, -1.9]]


class Groups(PresetCase):
    def grpo(self, system, scores, **parameters):
        columns = {"score": scores, "rollout_logprobs": [[-1.0, -0.5]] * len(scores)}
        out = self.try_one("grpo", columns, system, groups=[len(scores)], **parameters)
        return out["columns"]["advantages"]

    def test_advantages_of_a_group(self):
        for system in SYSTEMS:
            for scores in GROUPS:
                with self.subTest(system, scores=scores):
                    expected = [[a, a] for a in formulas.group_advantages(system, scores)]
                    self.assert_near(self.grpo(system, scores), expected, 1e-6)

    def test_the_epsilon_shows_where_scores_hardly_differ(self):
        scores = [1.0, 1.0 + 2**-12]
        found = {}
        for system in ("openrlhf", "verl", "trl"):
            found[system] = self.grpo(system, scores)[1][0]
            self.assert_near(found[system], formulas.group_advantages(system, scores)[1], 1e-4)
        self.assertGreater(found["verl"] - found["trl"], 0.1)

    def test_a_group_of_one(self):
        for system in ("verl", "trl", "nemo_rl"):
            with self.subTest(system):
                self.assert_near(self.grpo(system, [3.0]), [[a, a] for a in formulas.group_advantages(system, [3.0])], 1e-5)

    def test_equal_scores_are_no_signal_anywhere(self):
        for system in SYSTEMS:
            with self.subTest(system):
                self.assert_near(self.grpo(system, [0.5] * 4), [[0.0, 0.0]] * 4)


class WhiteningVariance(PresetCase):
    def test_gae(self):
        for system in SYSTEMS:
            with self.subTest(system):
                out = self.try_one("gae", {"token_rewards": REWARDS, "values": VALUES}, system, groups=[2, 1])
                self.assert_near(out["columns"]["advantages"], formulas.whiten(system, formulas.gae(system, REWARDS, VALUES)[0]))

    def test_reinforce_pp(self):
        # Only the last action is rewarded and gamma is 1, so that the return of each action is the score in all systems.
        scores = [1.0, -2.0, 0.5]
        rewards = [[0.0] * (len(sample) - 1) + [score] for sample, score in zip(REWARDS, scores)]
        returns = [[score] * len(sample) for sample, score in zip(REWARDS, scores)]
        for system in ("openrlhf", "verl", "nemo_rl"):
            with self.subTest(system):
                out = self.try_one("reinforce_pp", {"token_rewards": rewards, "score": scores}, system, groups=[2, 1])
                self.assert_near(out["columns"]["advantages"], formulas.whiten_reinforce(system, returns))


class Penalty(PresetCase):
    def test_clamps_of_the_penalty_in_the_rewards(self):
        columns = {"score": [0.0] * 3, "rollout_logprobs": FAR, "reference_logprobs": REFERENCES}
        for system in SYSTEMS:
            with self.subTest(system):
                self.assert_near(self.try_one("token_rewards", columns, system, kl_coefficient=0.3)["columns"]["token_rewards"],
                                 formulas.token_rewards(system, columns["score"], FAR, REFERENCES, coefficient=0.3))


class Losses(PresetCase):
    def loss(self, system, logprobs, advantages, **parameters):
        columns = {"logprobs": logprobs, "old_logprobs": logprobs, "advantages": advantages, "reference_logprobs": REFERENCES}
        return self.try_one("objective:ppo_clip", columns, system, **parameters)["loss"]

    def test_the_kl_term_of_each_system(self):
        nothing = [[0.0] * len(sample) for sample in LOGPROBS]
        for system in SYSTEMS:
            for logprobs in (LOGPROBS, FAR):
                with self.subTest(system, far=logprobs is FAR):
                    expected = 0.3 * formulas.token_mean(system, formulas.kl_losses(system, logprobs, REFERENCES))
                    self.assert_near(self.loss(system, logprobs, nothing, kl_coefficient=0.3), expected)

    def test_the_kl_term_by_default(self):
        nothing = [[0.0] * len(sample) for sample in LOGPROBS]
        for system in SYSTEMS:
            with self.subTest(system):
                losses = formulas.kl_losses(system, LOGPROBS, REFERENCES)
                expected = formulas.KL_IN_LOSS[system][0] * formulas.token_mean(system, losses)
                self.assert_near(self.loss(system, LOGPROBS, nothing), expected, 1e-7)

    def test_averages(self):
        columns = {"logprobs": LOGPROBS, "old_logprobs": OLD, "advantages": ADVANTAGES, "reference_logprobs": LOGPROBS}
        for system in SYSTEMS:
            losses = formulas.policy_losses(system, LOGPROBS, OLD, ADVANTAGES)
            for aggregation, expected in (
                ({}, formulas.token_mean(system, losses)), ({"aggregation": "sample_mean"}, formulas.sample_mean(losses)),
                ({"aggregation": "sequence_sum", "sequence_constant": 8}, formulas.sequence_sum(losses, 8))):
                with self.subTest(system, aggregation=aggregation):
                    self.assert_near(self.try_one("objective:ppo_clip", columns, system, **aggregation)["loss"], expected)

    def test_importance_weights_where_they_are_switched_on(self):
        columns = {"logprobs": LOGPROBS, "old_logprobs": OLD, "advantages": ADVANTAGES, "reference_logprobs": LOGPROBS,
                   "rollout_logprobs": ROLLOUT}
        for system, correction in (("openrlhf", "truncate"), ("verl", "truncate"), ("trl", "mask")):
            with self.subTest(system):
                losses = formulas.policy_losses(system, LOGPROBS, OLD, ADVANTAGES)
                weights = formulas.correction_weights(system, OLD, ROLLOUT)
                expected = formulas.token_mean(system, [[w * x for w, x in zip(*sample)] for sample in zip(weights, losses)])
                self.assert_near(self.try_one("objective:ppo_clip", columns, system, correction=correction)["loss"], expected)
                self.assertFalse(math.isclose(expected, formulas.token_mean(system, losses)))


if __name__ == "__main__":
    unittest.main()
