"""Advantages as their papers and the other systems define them, in plain Python: what `rlhf-run try` is compared with.

Written from the formulas, one sample or one group at a time, without looking for speed. Sources are named at each function: of
verl in core_algos.py, of OpenRLHF in experience_maker.py, of NeMo-RL in advantage_estimator.py, of SkyRL in ppo_utils.py.
"""

import itertools
import math
import statistics


def std(values, bessel=True):
    if bessel:
        return statistics.stdev(values) if len(values) > 1 else 0.0
    return statistics.pstdev(values)


def grpo(rewards, epsilon=1e-6, bessel=True, inside=False, normalize=True, lone="zero", deviation=None):
    """Shao et al. 2024, section 4.1.2; normalize = False: Liu et al. 2025 (Dr. GRPO). verl and SkyRL: lone = "score"."""
    if len(rewards) == 1:
        return [rewards[0] if lone == "score" else 0.0]
    mean = statistics.fmean(rewards)
    deviation = std(rewards, bessel) if deviation is None else deviation
    divisor = 1.0 if not normalize else math.sqrt(deviation**2 + epsilon) if inside else deviation + epsilon
    return [(reward - mean) / divisor for reward in rewards]


def grpo_leave_one_out(rewards, epsilon=1e-6):
    """NeMo-RL, use_leave_one_out_baseline of its GRPO: mean and std of the others; nothing is divided where that is 0."""
    advantages = []
    for i, reward in enumerate(rewards):
        others = rewards[:i] + rewards[i + 1:]
        if not others:
            advantages.append(0.0)
            continue
        deviation = std(others)
        advantages.append((reward - statistics.fmean(others)) / (deviation + epsilon if deviation > 0 else 1.0))
    return advantages


def grpo_process(samples, epsilon=1e-6):
    """Shao et al. 2024, section 4.1.3. samples: a list of {action: reward of the step that ends there} and a length each."""
    steps = [reward for _, ends in samples for reward in ends.values()]
    mean, deviation = statistics.fmean(steps), std(steps)
    return [[sum((reward - mean) / (deviation + epsilon) for end, reward in ends.items() if end >= t) for t in range(length)]
            for length, ends in samples]


def gdpo(groups, weights, epsilon=1e-6):
    """Liu et al. 2026 (GDPO), section 3, and TRL, multi_objective_aggregation = "normalize_then_sum". groups: for each group its
    samples, for each sample its scores."""
    sums = [sum(weight * score for weight, score in zip(weights, sample))
            for samples in groups for sample in zip(*[grpo(list(scores), epsilon) for scores in zip(*samples)])]
    mean, deviation = statistics.fmean(sums), std(sums)
    return [(value - mean) / (deviation + epsilon) for value in sums]


def rloo(rewards):
    """Ahmadian et al. 2024: the reward less the mean of the other k - 1 samples."""
    if len(rewards) == 1:
        return [0.0]
    return [reward - statistics.fmean(rewards[:i] + rewards[i + 1:]) for i, reward in enumerate(rewards)]


def maxrl(rewards, epsilon=1e-6):
    """Tajwar et al. 2026; SkyRL compute_maxrl_advantage."""
    if len(rewards) == 1:
        return [0.0]
    mean = statistics.fmean(rewards)
    return [(reward - mean) / (mean + epsilon) if mean else 0.0 for reward in rewards]


def opo(rewards, lengths):
    """Hao et al. 2025: the baseline weighs each sample by its length."""
    if len(rewards) == 1 or not sum(lengths):
        return [0.0] * len(rewards)
    baseline = sum(length * reward for length, reward in zip(lengths, rewards)) / sum(lengths)
    return [reward - baseline for reward in rewards]


def pass_at_k(rewards, k, epsilon=1e-6):
    """Chen et al. 2025, by enumeration: all subsets of k samples, each scored by its best one and normalised by mean and standard
    deviation over the subsets; a sample gets the mean of the subsets that it is in."""
    subsets = list(itertools.combinations(range(len(rewards)), k))
    scores = [max(rewards[i] for i in subset) for subset in subsets]
    mean, deviation = statistics.fmean(scores), statistics.pstdev(scores)
    normalised = [(score - mean) / (deviation + epsilon) for score in scores]
    return [statistics.fmean(a for subset, a in zip(subsets, normalised) if i in subset) for i in range(len(rewards))]


def reward_to_go(rewards, discount=1.0, mask=None):
    """verl and SkyRL, compute_reinforce_plus_plus_outcome_advantage: starts again at a masked action, which still gets it."""
    returns, running = [], 0.0
    for t in reversed(range(len(rewards))):
        running = rewards[t] + discount * running
        returns.insert(0, running)
        if mask is not None and not mask[t]:
            running = 0.0
    return returns


def gae(rewards, values, discount, trust, mask=None, skip=False):
    """Schulman et al. 2016, eq. 16, as the sum over all later errors. skip (NeMo-RL, verl): masked actions are not there."""
    kept = [t for t in range(len(rewards)) if not (skip and mask is not None and not mask[t])]
    errors = []
    for here, after in itertools.zip_longest(kept, kept[1:]):
        errors.append(rewards[here] + discount * (0.0 if after is None else values[after]) - values[here])
    advantages, returns = [0.0] * len(rewards), [0.0] * len(rewards)
    for i, t in enumerate(kept):
        advantages[t] = sum((discount * trust)**(j - i) * errors[j] for j in range(i, len(kept)))
        returns[t] = advantages[t] + values[t]
    return advantages, returns


def whiten(samples, masks=None, bessel=True, epsilon=1e-8, shift_mean=True):
    """masked_whiten of TRL, verl and SkyRL; bessel = False: OpenRLHF and NeMo-RL's REINFORCE++ (but for the clamp at 1e-8)."""
    masks = masks or [[1.0] * len(sample) for sample in samples]
    pairs = [(x, w) for sample, mask in zip(samples, masks) for x, w in zip(sample, mask)]
    total = sum(w for _, w in pairs)
    mean = sum(x * w for x, w in pairs) / total
    variance = sum(w * (x - mean)**2 for x, w in pairs) / (total - 1 if bessel else total)
    back = 0.0 if shift_mean else mean
    return [[(x - mean) / math.sqrt(variance + epsilon) + back for x in sample] for sample in samples]


def kl(policy, reference, estimator, clamp_input=math.inf, clamp_output=math.inf):
    """Schulman 2020; the clamps of NeMo-RL's calculate_kl."""
    log_ratio = max(-clamp_input, min(clamp_input, reference - policy))  # log r of the note
    estimates = {"k1": -log_ratio, "k2": log_ratio**2 / 2, "k3": math.exp(log_ratio) - 1 - log_ratio, "abs": abs(log_ratio)}
    return max(-clamp_output, min(clamp_output, estimates[estimator]))


def adaptive_kl(coefficient, kl_mean, samples, target, horizon):
    """Ziegler et al. 2019, section 2.2."""
    error = min(0.2, max(-0.2, kl_mean / target - 1))
    return coefficient * (1 + error * samples / horizon)
