"""What OpenRLHF, verl, TRL and NeMo-RL compute by default, written down in plain Python from their sources, which are named at
each function with the commits that docs/conventions.md lists. A batch is a list of samples, each a list with one number an
action."""

import math

SYSTEMS = ("openrlhf", "verl", "trl", "nemo_rl")


def clamp(x, low, high):
    return max(low, min(high, x))


def mean(numbers):
    numbers = list(numbers)
    return math.fsum(numbers) / len(numbers)


def flat(batch):
    return [number for sample in batch for number in sample]


def deviation(numbers, ddof):
    center = mean(numbers)
    return math.sqrt(math.fsum((x - center) ** 2 for x in numbers) / (len(numbers) - ddof))


# Advantages


# Gamma and lambda: openrlhf/cli/train_ppo_ray.py; verl/trainer/config/ppo_trainer.yaml; trl/experimental/ppo/ppo_config.py;
# examples/configs/ppo_math_1B.yaml.
GAE = {"openrlhf": (1.0, 1.0), "verl": (1.0, 1.0), "trl": (1.0, 0.95), "nemo_rl": (1.0, 0.95)}


def gae(system, rewards, values):
    """Advantages before whitening, and returns. The four differ in gamma and lambda alone once there is no padding."""
    gamma, trust = GAE[system]
    advantages, returns = [], []
    for of_sample, values_of_sample in zip(rewards, values):
        running, after, backwards = 0.0, 0.0, []
        for reward, value in zip(reversed(of_sample), reversed(values_of_sample)):
            running = reward + gamma * after - value + gamma * trust * running
            after = value
            backwards.append(running)
        advantages.append(backwards[::-1])
        returns.append([a + v for a, v in zip(advantages[-1], values_of_sample)])
    return advantages, returns


def whiten(system, batch):
    """openrlhf: compute_advantages_and_returns: biased variance, at least 1e-8. verl and trl: masked_whiten; nemo_rl:
    _reward_whiten with masked_var: variance with n - 1, plus 1e-8."""
    numbers = flat(batch)
    center = mean(numbers)
    squares = math.fsum((x - center) ** 2 for x in numbers)
    if system == "openrlhf":
        scale = max(squares / len(numbers), 1e-8) ** -0.5
    else:
        scale = (squares / (len(numbers) - 1) + 1e-8) ** -0.5
    return [[(x - center) * scale for x in sample] for sample in batch]


def whiten_reinforce(system, batch):
    """openrlhf: estimator reinforce; nemo_rl: ReinforcePlusPlusAdvantageEstimator: biased variance, at least 1e-8. verl:
    compute_reinforce_plus_plus_outcome_advantage: masked_whiten."""
    return whiten("openrlhf" if system == "nemo_rl" else system, batch)


def group_advantages(system, scores):
    """GRPO of one group.

    openrlhf: estimator group_norm of compute_advantages_and_returns. verl: compute_grpo_outcome_advantage. trl:
    _generate_and_score_completions of GRPOTrainer. nemo_rl: GRPOAdvantageEstimator with calculate_baseline_and_std_per_prompt."""
    if system == "nemo_rl":
        return nemo_group_advantages(scores)
    if len(scores) == 1:
        if system == "openrlhf":
            raise ValueError("OpenRLHF refuses one sample a prompt")
        return [scores[0] / (1 + 1e-6)] if system == "verl" else [0.0]
    epsilon = {"openrlhf": 1e-9, "verl": 1e-6, "trl": 1e-4}[system]
    return [(score - mean(scores)) / (deviation(scores, 1) + epsilon) for score in scores]


def nemo_group_advantages(scores):
    """Baseline and deviation are those of the other samples; without a deviation nothing is divided."""
    if len(scores) == 1:
        return [0.0]
    advantages = []
    for i, score in enumerate(scores):
        others = scores[:i] + scores[i + 1:]
        spread = deviation(others, 1) if len(others) > 1 else 0.0
        difference = score - mean(others)
        advantages.append(difference / (spread + 1e-6) if spread > 0 else difference)
    return advantages


# KL to the reference


def kl(system, logprob, reference, estimator):
    """openrlhf: compute_approx_kl. verl: kl_penalty_forward. trl: grpo_trainer.py _compute_loss (k3), ppo_trainer.py train.
    nemo_rl: calculate_kl."""
    difference = logprob - reference
    if system == "nemo_rl" or (system == "verl" and estimator == "k3"):
        difference = clamp(difference, -20.0, 20.0)
    value = {"k1": difference, "k2": difference**2 / 2, "k3": math.exp(-difference) - 1 + difference}[estimator]
    if system in ("openrlhf", "nemo_rl") or (system == "verl" and estimator == "k3"):
        value = clamp(value, -10.0, 10.0)
    return value


# (coefficient, estimator) by default, of the penalty in the rewards and of the term in the loss.
KL_IN_REWARDS = {"openrlhf": (0.01, "k1"), "verl": (0.0, "k1"), "trl": (0.05, "k1"), "nemo_rl": (0.0, "k3")}
KL_IN_LOSS = {"openrlhf": (0.0, "k1"), "verl": (0.0, "k3"), "trl": (0.0, "k3"), "nemo_rl": (0.01, "k3")}


def token_rewards(system, scores, logprobs, references, coefficient=None):
    """The score on the last action, a penalty on every one: openrlhf compute_reward, verl apply_kl_penalty, trl train, nemo_rl
    _build_token_level_rewards."""
    default, estimator = KL_IN_REWARDS[system]
    coefficient = default if coefficient is None else coefficient
    rewards = []
    for score, of_sample, references_of_sample in zip(scores, logprobs, references):
        rewards.append([-coefficient * kl(system, p, r, estimator) for p, r in zip(of_sample, references_of_sample)])
        if rewards[-1]:
            rewards[-1][-1] += score
    return rewards


# Losses

CLIP = {"openrlhf": (0.2, 0.2, None), "verl": (0.2, 0.2, 3.0), "trl": (0.2, 0.2, None), "nemo_rl": (0.2, 0.2, None)}
VALUE_CLIP = {"openrlhf": 0.5, "verl": 0.5, "trl": 0.2, "nemo_rl": 0.2}


def policy_loss_of_action(system, logprob, old, advantage):
    """openrlhf: PolicyLoss. verl: compute_policy_loss_vanilla. trl: _compute_loss of GRPOTrainer. nemo_rl: ClippedPGLossFn."""
    low, high, dual = CLIP[system]
    log_ratio = logprob - old
    if system in ("openrlhf", "verl"):
        log_ratio = clamp(log_ratio, -20.0, 20.0)
    ratio = math.exp(log_ratio)
    loss = max(-ratio * advantage, -clamp(ratio, 1 - low, 1 + high) * advantage)
    return min(loss, -dual * advantage) if dual is not None and advantage < 0 else loss


def token_mean(system, losses):
    """openrlhf: aggregate_loss. verl: agg_loss, token-mean. trl: loss_type dapo. nemo_rl: token_level_loss."""
    return mean(flat(losses))


def sample_mean(losses):
    """verl: seq-mean-token-mean. trl: loss_type grpo. openrlhf and nemo_rl: without token_level_loss. Samples without actions do
    not count in verl and openrlhf."""
    return mean(mean(sample) for sample in losses if sample)


def sequence_sum(losses, constant):
    """trl: loss_type dr_grpo: over samples times max_completion_length."""
    return math.fsum(flat(losses)) / (len(losses) * constant)


def policy_losses(system, logprobs, old, advantages):
    return [[policy_loss_of_action(system, *action) for action in zip(*sample)] for sample in zip(logprobs, old, advantages)]


def kl_losses(system, logprobs, references, estimator=None):
    estimator = KL_IN_LOSS[system][1] if estimator is None else estimator
    return [[kl(system, p, r, estimator) for p, r in zip(*sample)] for sample in zip(logprobs, references)]


def value_loss(system, values, old_values, returns):
    """Mean over the actions. openrlhf: ValueLoss. verl: compute_value_loss. trl: train. nemo_rl: MseValueLossFn with the clip of
    its PPO recipe, without `scale`."""
    clip = VALUE_CLIP[system]
    losses = []
    for value, old, expected in zip(flat(values), flat(old_values), flat(returns)):
        near = clamp(value, old - clip, old + clip)
        losses.append(0.5 * max((value - expected) ** 2, (near - expected) ** 2))
    return mean(losses)


# Importance weights of the weights that train (old) against those that sampled (rollout)


def correction_weights(system, old, rollout):
    """What multiplies the loss of each action when the correction is on, with default bounds.

    openrlhf: PolicyLoss, tis: each action, held in [0.5, 5]. verl: compute_rollout_correction_weights, sequence: product over the
    sample, at most 2. trl: sequence_mask: product over the sample, 0 above 3."""
    weights = []
    for sample, rollout_of_sample in zip(old, rollout):
        differences = [o - r for o, r in zip(sample, rollout_of_sample)]
        if system == "openrlhf":
            weights.append([clamp(math.exp(d), 0.5, 5.0) for d in differences])
            continue
        whole = math.exp(math.fsum(differences))
        whole = min(whole, 2.0) if system == "verl" else whole if whole <= 3.0 else 0.0
        weights.append([whole] * len(sample))
    return weights
