#include "nodes/presets.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "nodes/objectives/objective.h"

namespace sluice::nodes {
namespace {

using engine::Preset;

struct Line {
  const char* of;
  const char* key;
  decltype(engine::Value::data) value;
  const char* source;
};

// The objectives with the parameters of policy_loss.h: "objective:*" in the tables below. How a loss is averaged is said of each
// by itself, since GSPO, GMPO and SAPO average over samples in all systems.
std::vector<std::string> policy_objectives(const engine::Registry& registry) {
  std::vector<std::string> types;
  for (const auto& [name, type] : registry.components()) {
    if (name.first == Objective::kComponent && type.params.find("kl_coefficient") != nullptr)
      types.push_back(name.first + ":" + name.second);
  }
  return types;
}

Preset preset(const engine::Registry& registry, const char* name, const char* summary, std::initializer_list<Line> lines) {
  Preset made(name, summary);
  for (const Line& line : lines) {
    const bool shared = line.of == std::string_view("objective:*");
    const std::vector<std::string> types = shared ? policy_objectives(registry) : std::vector<std::string>{line.of};
    for (const std::string& type : types) made.set(type, line.key, line.value, line.source);
  }
  return made;
}

// Files are relative to the package of the system: openrlhf/, verl/, trl/, and the root of NeMo-RL.

Preset openrlhf(const engine::Registry& registry) {
  return preset(
      registry, "openrlhf", "what OpenRLHF does by default (commit 3c3be6234e0c)",
      {
          {"gae", "discount", 1.0, "cli/train_ppo_ray.py: --algo.advantage.gamma"},
          {"gae", "lambda", 1.0, "cli/train_ppo_ray.py: --algo.advantage.lambd"},
          {"gae", "whiten", "iteration", "trainer/ppo_utils/experience_maker.py: compute_advantages_and_returns"},
          {"token_rewards", "kl_coefficient", 0.01, "cli/train_ppo_ray.py: --algo.kl.init_coef"},
          {"token_rewards", "kl_estimator", "k1", "cli/train_ppo_ray.py: --algo.kl.estimator"},
          {"gae", "whiten_variance", "biased", "trainer/ppo_utils/experience_maker.py: compute_advantages_and_returns"},
          {"reinforce_pp", "discount", 1.0, "cli/train_ppo_ray.py: --algo.advantage.gamma"},
          {"reinforce_pp", "whiten", "iteration", "trainer/ppo_utils/experience_maker.py: compute_advantages_and_returns"},
          {"reinforce_pp", "whiten_variance", "biased", "trainer/ppo_utils/experience_maker.py: compute_advantages_and_returns"},
          {"grpo", "normalize_std", true, "trainer/ppo_utils/experience_maker.py: group_norm"},
          {"grpo", "epsilon", 1e-9, "trainer/ppo_utils/experience_maker.py: group_norm"},
          {"grpo", "epsilon_placement", "outside", "trainer/ppo_utils/experience_maker.py: group_norm"},
          {"grpo", "std", "bessel", "trainer/ppo_utils/experience_maker.py: group_norm"},
          {"grpo", "baseline", "group_mean", "trainer/ppo_utils/experience_maker.py: group_norm"},
          {"token_rewards", "clamp_output", 10.0, "models/utils.py: compute_approx_kl"},
          {"token_rewards", "score_clip", engine::Array{{-10.0}, {10.0}}, "cli/train_ppo_ray.py: --reward.clip_range"},
          {"objective:*", "kl_coefficient", 0.0, "cli/train_ppo_ray.py: --algo.kl.use_loss is off"},
          {"objective:*", "kl_estimator", "k1", "cli/train_ppo_ray.py: --algo.kl.estimator"},
          {"objective:*", "kl_clamp_output", 10.0, "models/utils.py: compute_approx_kl"},
          {"objective:*", "entropy_coefficient", 0.0, "cli/train_ppo_ray.py: --actor.entropy_coef is unset"},
          {"objective:*", "correction", "none", "cli/train_ppo_ray.py: --algo.advantage.is_correction_enable is off"},
          {"objective:*", "correction_level", "token", "models/loss.py: PolicyLoss"},
          {"objective:*", "correction_max", 5.0, "cli/train_ppo_ray.py: --algo.advantage.is_correction_threshold"},
          {"objective:*", "correction_min", 0.5, "cli/train_ppo_ray.py: --algo.advantage.is_correction_threshold"},
          {"objective:ppo_clip", "aggregation", "token_mean", "models/loss.py: aggregate_loss"},
          {"objective:cispo", "aggregation", "token_mean", "models/loss.py: aggregate_loss"},
          {"objective:reinforce", "aggregation", "token_mean", "models/loss.py: aggregate_loss"},
          {"train_ppo", "recompute_old_logprobs", true, "trainer/ppo_utils/experience_maker.py: make_experience"},
          {"train_ppo", "whiten_advantages", false, "trainer/ppo_utils/experience_maker.py: compute_advantages_and_returns"},
          {"objective:ppo_clip", "clip_low", 0.2, "cli/train_ppo_ray.py: --actor.eps_clip"},
          {"objective:ppo_clip", "clip_high", 0.2, "cli/train_ppo_ray.py: --actor.eps_clip"},
          {"objective:ppo_clip", "dual_clip", 0.0, "cli/train_ppo_ray.py: --actor.dual_clip is unset"},
          {"value_objective:value_clip", "clip", 0.5, "cli/train_ppo_ray.py: --critic.value_clip"},
          {"model.optimizer", "schedule", "cosine", "cli/train_ppo_ray.py: lr_scheduler is cosine_with_min_lr"},
          {"model.optimizer", "warmup", 0.03, "cli/train_ppo_ray.py: lr_warmup_ratio"},
          {"model.optimizer", "minimum", 0.1, "trainer/ray/ppo_actor.py: min_lr"},
          {"model.optimizer", "beta1", 0.9, "cli/train_ppo_ray.py: --actor.adam.betas"},
          {"model.optimizer", "beta2", 0.95, "cli/train_ppo_ray.py: --actor.adam.betas"},
          {"model.optimizer", "epsilon", 1e-8, "cli/train_ppo_ray.py: --actor.adam.eps"},
          {"model.optimizer", "weight_decay", 0.0, "cli/train_ppo_ray.py: --actor.adam.weight_decay"},
          {"model.optimizer", "clip_grad_norm", 1.0, "cli/train_ppo_ray.py: --actor.max_norm"},
      });
}

Preset verl(const engine::Registry& registry) {
  return preset(
      registry, "verl", "what verl does by default (commit b178a3cd56f5)",
      {
          {"gae", "discount", 1.0, "trainer/config/ppo_trainer.yaml: algorithm.gamma"},
          {"gae", "lambda", 1.0, "trainer/config/ppo_trainer.yaml: algorithm.lam"},
          {"gae", "whiten", "iteration", "trainer/ppo/core_algos.py: compute_gae_advantage_return"},
          {"token_rewards", "kl_coefficient", 0.0, "trainer/config/ppo_trainer.yaml: algorithm.use_kl_in_reward is off"},
          {"token_rewards", "kl_estimator", "k1", "trainer/config/ppo_trainer.yaml: algorithm.kl_penalty"},
          {"gae", "whiten_variance", "bessel", "utils/torch_functional.py: masked_var"},
          {"gae", "masked_actions", "skipped", "trainer/ppo/core_algos.py: compute_gae_advantage_return"},
          {"reinforce_pp", "discount", 1.0, "trainer/config/ppo_trainer.yaml: algorithm.gamma"},
          {"reinforce_pp", "whiten", "iteration", "trainer/ppo/core_algos.py: compute_reinforce_plus_plus_outcome_advantage"},
          {"reinforce_pp", "whiten_variance", "bessel", "utils/torch_functional.py: masked_var"},
          {"grpo", "normalize_std", true, "trainer/config/ppo_trainer.yaml: algorithm.norm_adv_by_std_in_grpo"},
          {"grpo", "epsilon", 1e-6, "trainer/ppo/core_algos.py: compute_grpo_outcome_advantage"},
          {"grpo", "epsilon_placement", "outside", "trainer/ppo/core_algos.py: compute_grpo_outcome_advantage"},
          {"grpo", "std", "bessel", "trainer/ppo/core_algos.py: compute_grpo_outcome_advantage"},
          {"grpo", "baseline", "group_mean", "trainer/ppo/core_algos.py: compute_grpo_outcome_advantage"},
          {"grpo", "lone_sample", "score", "trainer/ppo/core_algos.py: compute_grpo_outcome_advantage"},
          {"token_rewards", "kl_measure", "token", "trainer/ppo/ray_trainer.py: apply_kl_penalty"},
          {"objective:*", "kl_coefficient", 0.0, "trainer/config/actor/actor.yaml: use_kl_loss is off"},
          {"objective:*", "kl_estimator", "k3", "trainer/config/actor/actor.yaml: kl_loss_type"},
          {"objective:*", "kl_clamp_input", 20.0, "trainer/ppo/core_algos.py: kl_penalty_forward"},
          {"objective:*", "kl_clamp_output", 10.0, "trainer/ppo/core_algos.py: kl_penalty_forward"},
          {"objective:*", "entropy_coefficient", 0.0, "trainer/config/actor/actor.yaml: entropy_coeff"},
          {"objective:*", "correction", "none", "trainer/config/algorithm/rollout_correction.yaml: rollout_is"},
          {"objective:*", "correction_level", "sequence", "trainer/config/algorithm.py: RolloutCorrectionConfig"},
          {"objective:*", "correction_max", 2.0, "trainer/config/algorithm/rollout_correction.yaml: rollout_is_threshold"},
          {"objective:*", "correction_min", 0.0, "trainer/ppo/rollout_corr_helper.py: compute_rollout_correction_weights"},
          {"objective:ppo_clip", "aggregation", "token_mean", "trainer/config/actor/actor.yaml: loss_agg_mode"},
          {"objective:cispo", "aggregation", "token_mean", "trainer/config/actor/actor.yaml: loss_agg_mode"},
          {"objective:reinforce", "aggregation", "token_mean", "trainer/config/actor/actor.yaml: loss_agg_mode"},
          {"train_ppo", "recompute_old_logprobs", true, "trainer/ppo/ray_trainer.py: fit"},
          {"train_ppo", "whiten_advantages", false, "trainer/ppo/core_algos.py: compute_gae_advantage_return"},
          {"objective:ppo_clip", "clip_low", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_low"},
          {"objective:ppo_clip", "clip_high", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_high"},
          {"objective:ppo_clip", "dual_clip", 3.0, "trainer/config/actor/actor.yaml: clip_ratio_c"},
          {"objective:gmpo", "clip_low", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_low"},
          {"objective:gmpo", "clip_high", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_high"},
          {"objective:sapo", "tau_positive", 1.0, "trainer/config/actor/actor.yaml: tau_pos"},
          {"objective:sapo", "tau_negative", 1.05, "trainer/config/actor/actor.yaml: tau_neg"},
          {"objective:clip_cov", "cov_share", 0.0002, "trainer/config/actor/actor.yaml: policy_loss.clip_cov_ratio"},
          {"objective:clip_cov", "cov_low", 1.0, "trainer/config/actor/actor.yaml: policy_loss.clip_cov_lb"},
          {"objective:clip_cov", "cov_high", 5.0, "trainer/config/actor/actor.yaml: policy_loss.clip_cov_ub"},
          {"objective:clip_cov", "clip_low", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_low"},
          {"objective:clip_cov", "clip_high", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_high"},
          {"objective:kl_cov", "cov_share", 0.0002, "trainer/config/actor/actor.yaml: policy_loss.kl_cov_ratio"},
          {"objective:kl_cov", "penalty_coefficient", 0.1, "trainer/config/actor/actor.yaml: policy_loss.ppo_kl_coef"},
          {"value_objective:value_clip", "clip", 0.5, "trainer/config/critic/critic.yaml: cliprange_value"},
          {"filter_groups", "drop_equal_scores", true, "trainer/config/algorithm.py: FilterGroupsConfig"},
          {"model.optimizer", "schedule", "constant", "trainer/config/optim/fsdp.yaml: lr_scheduler_type"},
          {"model.optimizer", "warmup", 0.0, "trainer/config/optim/fsdp.yaml: lr_warmup_steps_ratio"},
          {"model.optimizer", "beta1", 0.9, "trainer/config/optim/fsdp.yaml: betas"},
          {"model.optimizer", "beta2", 0.999, "trainer/config/optim/fsdp.yaml: betas"},
          {"model.optimizer", "epsilon", 1e-8, "torch.optim.AdamW: eps"},
          {"model.optimizer", "weight_decay", 0.01, "trainer/config/actor/actor.yaml: optim.weight_decay"},
          {"model.optimizer", "clip_grad_norm", 1.0, "trainer/config/actor/dp_actor.yaml: grad_clip"},
      });
}

Preset trl(const engine::Registry& registry) {
  return preset(
      registry, "trl", "what TRL does by default (commit f2cd57710ae3)",
      {
          {"gae", "discount", 1.0, "experimental/ppo/ppo_config.py: gamma"},
          {"gae", "lambda", 0.95, "experimental/ppo/ppo_config.py: lam"},
          {"gae", "whiten", "iteration", "experimental/ppo/ppo_trainer.py: masked_whiten of the advantages"},
          {"token_rewards", "kl_coefficient", 0.05, "experimental/ppo/ppo_config.py: kl_coef"},
          {"token_rewards", "kl_estimator", "k1", "experimental/ppo/ppo_config.py: kl_estimator"},
          {"gae", "whiten_variance", "bessel", "experimental/ppo/ppo_trainer.py: masked_var"},
          {"grpo", "normalize_std", true, "trainer/grpo_config.py: scale_rewards"},
          {"grpo", "epsilon", 1e-4, "trainer/grpo_trainer.py: _generate_and_score_completions"},
          {"grpo", "epsilon_placement", "outside", "trainer/grpo_trainer.py: _generate_and_score_completions"},
          {"grpo", "std", "bessel", "trainer/utils.py: nanstd"},
          {"grpo", "baseline", "group_mean", "trainer/grpo_trainer.py: _generate_and_score_completions"},
          {"grpo", "lone_sample", "zero", "trainer/grpo_trainer.py: _generate_and_score_completions"},
          {"objective:*", "kl_coefficient", 0.0, "trainer/grpo_config.py: beta"},
          {"objective:*", "kl_estimator", "k3", "trainer/grpo_trainer.py: _compute_loss"},
          {"objective:*", "entropy_coefficient", 0.0, "trainer/grpo_config.py: entropy_coef is not there"},
          {"objective:*", "correction", "none", "trainer/grpo_config.py: without vLLM"},
          {"objective:*", "correction_level", "sequence", "trainer/grpo_config.py: vllm_importance_sampling_mode"},
          {"objective:*", "correction_max", 3.0, "trainer/grpo_config.py: vllm_importance_sampling_clip_max"},
          {"objective:*", "correction_min", 0.0, "trainer/grpo_config.py: vllm_importance_sampling_mode"},
          {"objective:ppo_clip", "aggregation", "token_mean", "trainer/grpo_config.py: loss_type"},
          {"objective:cispo", "aggregation", "token_mean", "trainer/grpo_config.py: loss_type"},
          {"objective:reinforce", "aggregation", "token_mean", "trainer/grpo_config.py: loss_type"},
          {"train_ppo", "recompute_old_logprobs", true, "experimental/ppo/ppo_trainer.py: train"},
          {"train_ppo", "whiten_advantages", false, "trainer/grpo_trainer.py: _generate_and_score_completions"},
          {"objective:ppo_clip", "clip_low", 0.2, "trainer/grpo_config.py: epsilon; experimental/ppo/ppo_config.py: cliprange"},
          {"objective:ppo_clip", "clip_high", 0.2, "trainer/grpo_config.py: epsilon_high is unset"},
          {"objective:ppo_clip", "dual_clip", 0.0, "trainer/grpo_config.py: delta is unset"},
          {"objective:gmpo", "clip_low", 0.4, "experimental/gmpo/gmpo_config.py: epsilon"},
          {"objective:gmpo", "clip_high", 0.4, "experimental/gmpo/gmpo_config.py: epsilon_high is unset"},
          {"objective:sapo", "tau_positive", 1.0, "trainer/grpo_config.py: sapo_temperature_pos"},
          {"objective:sapo", "tau_negative", 1.05, "trainer/grpo_config.py: sapo_temperature_neg"},
          {"objective:vespo", "k_positive", 2.0, "trainer/grpo_config.py: vespo_k_pos"},
          {"objective:vespo", "lambda_positive", 3.0, "trainer/grpo_config.py: vespo_lambda_pos"},
          {"objective:vespo", "k_negative", 3.0, "trainer/grpo_config.py: vespo_k_neg"},
          {"objective:vespo", "lambda_negative", 2.0, "trainer/grpo_config.py: vespo_lambda_neg"},
          {"value_objective:value_clip", "clip", 0.2, "experimental/ppo/ppo_config.py: cliprange_value"},
          {"model.optimizer", "schedule", "linear", "transformers.TrainingArguments: lr_scheduler_type"},
          {"model.optimizer", "warmup", 0.0, "transformers.TrainingArguments: warmup_steps"},
          {"model.optimizer", "beta1", 0.9, "transformers.TrainingArguments: adam_beta1"},
          {"model.optimizer", "beta2", 0.999, "transformers.TrainingArguments: adam_beta2"},
          {"model.optimizer", "epsilon", 1e-8, "transformers.TrainingArguments: adam_epsilon"},
          {"model.optimizer", "weight_decay", 0.0, "transformers.TrainingArguments: weight_decay"},
          {"model.optimizer", "clip_grad_norm", 1.0, "transformers.TrainingArguments: max_grad_norm"},
      });
}

Preset nemo_rl(const engine::Registry& registry) {
  return preset(
      registry, "nemo_rl", "what NeMo-RL does by default (commit 7ea279abfbeb)",
      {
          {"gae", "discount", 1.0, "examples/configs/ppo_math_1B.yaml: adv_estimator.gae_gamma"},
          {"gae", "lambda", 0.95, "examples/configs/ppo_math_1B.yaml: adv_estimator.gae_lambda"},
          {"gae", "whiten", "iteration", "examples/configs/ppo_math_1B.yaml: adv_estimator.normalize_advantages"},
          {"token_rewards", "kl_coefficient", 0.0, "nemo_rl/algorithms/loss/loss_functions.py: use_kl_in_reward is off"},
          {"token_rewards", "kl_estimator", "k3", "nemo_rl/algorithms/loss/loss_functions.py: reference_policy_kl_type"},
          {"gae", "whiten_variance", "bessel", "nemo_rl/algorithms/utils.py: masked_var"},
          {"gae", "masked_actions", "skipped", "nemo_rl/algorithms/advantage_estimator.py: GeneralizedAdvantageEstimator"},
          {"reinforce_pp", "whiten", "iteration",
           "nemo_rl/algorithms/advantage_estimator.py: ReinforcePlusPlusAdvantageEstimator"},
          {"reinforce_pp", "whiten_variance", "biased",
           "nemo_rl/algorithms/advantage_estimator.py: ReinforcePlusPlusAdvantageEstimator"},
          {"grpo", "normalize_std", true, "examples/configs/grpo_math_1B.yaml: normalize_rewards"},
          {"grpo", "epsilon", 1e-6, "nemo_rl/algorithms/advantage_estimator.py: GRPOAdvantageEstimator"},
          {"grpo", "epsilon_placement", "outside", "nemo_rl/algorithms/advantage_estimator.py: GRPOAdvantageEstimator"},
          {"grpo", "std", "bessel", "nemo_rl/algorithms/utils.py: calculate_baseline_and_std_per_prompt"},
          {"grpo", "baseline", "leave_one_out", "examples/configs/grpo_math_1B.yaml: use_leave_one_out_baseline"},
          {"grpo", "lone_sample", "zero", "nemo_rl/algorithms/utils.py: calculate_baseline_and_std_per_prompt"},
          {"token_rewards", "clamp_input", 20.0, "nemo_rl/algorithms/utils.py: calculate_kl"},
          {"token_rewards", "clamp_output", 10.0, "nemo_rl/algorithms/utils.py: calculate_kl"},
          {"objective:*", "kl_coefficient", 0.01, "nemo_rl/algorithms/loss/loss_functions.py: reference_policy_kl_penalty"},
          {"objective:*", "kl_estimator", "k3", "nemo_rl/algorithms/loss/loss_functions.py: reference_policy_kl_type"},
          {"objective:*", "kl_clamp_input", 20.0, "nemo_rl/algorithms/loss/loss_functions.py: kl_input_clamp_value"},
          {"objective:*", "kl_clamp_output", 10.0, "nemo_rl/algorithms/loss/loss_functions.py: kl_output_clamp_value"},
          {"objective:*", "entropy_coefficient", 0.0, "nemo_rl/algorithms/loss/loss_functions.py: ClippedPGLossFn has none"},
          {"objective:*", "correction", "none",
           "nemo_rl/algorithms/loss/loss_functions.py: use_importance_sampling_correction is off"},
          {"objective:*", "correction_level", "token",
           "nemo_rl/algorithms/loss/loss_functions.py: sequence_level_importance_ratios is off"},
          {"objective:*", "correction_min", 0.0, "nemo_rl/algorithms/loss/loss_functions.py: ClippedPGLossFn"},
          {"objective:ppo_clip", "aggregation", "token_mean", "nemo_rl/algorithms/loss/loss_functions.py: token_level_loss"},
          {"objective:cispo", "aggregation", "token_mean", "nemo_rl/algorithms/loss/loss_functions.py: token_level_loss"},
          {"objective:reinforce", "aggregation", "token_mean", "nemo_rl/algorithms/loss/loss_functions.py: token_level_loss"},
          {"train_ppo", "recompute_old_logprobs", true, "nemo_rl/algorithms/grpo.py: grpo_train"},
          {"train_ppo", "whiten_advantages", false, "nemo_rl/algorithms/advantage_estimator.py: GRPOAdvantageEstimator"},
          {"objective:ppo_clip", "clip_low", 0.2, "nemo_rl/algorithms/loss/loss_functions.py: ratio_clip_min"},
          {"objective:ppo_clip", "clip_high", 0.2, "nemo_rl/algorithms/loss/loss_functions.py: ratio_clip_max"},
          {"objective:ppo_clip", "dual_clip", 0.0, "nemo_rl/algorithms/loss/loss_functions.py: ratio_clip_c is unset"},
          {"value_objective:value_clip", "clip", 0.2, "examples/configs/ppo_math_1B.yaml: value_loss_fn.cliprange"},
          {"filter_groups", "drop_equal_scores", true, "nemo_rl/algorithms/grpo.py: dynamic_sampling"},
          {"filter_groups", "most_draws", 10, "examples/configs/grpo_math_1B.yaml: dynamic_sampling_max_gen_batches"},
          {"filter_groups", "oversample", 1.0, "examples/configs/grpo_math_1B.yaml: batch_multiplier"},
          {"model.optimizer", "beta1", 0.9, "examples/configs/grpo_math_1B.yaml: policy.optimizer.kwargs.betas"},
          {"model.optimizer", "beta2", 0.999, "examples/configs/grpo_math_1B.yaml: policy.optimizer.kwargs.betas"},
          {"model.optimizer", "epsilon", 1e-8, "examples/configs/grpo_math_1B.yaml: policy.optimizer.kwargs.eps"},
          {"model.optimizer", "weight_decay", 0.01, "examples/configs/grpo_math_1B.yaml: policy.optimizer.kwargs.weight_decay"},
          {"model.optimizer", "clip_grad_norm", 1.0, "examples/configs/grpo_math_1B.yaml: policy.max_grad_norm"},
      });
}

}  // namespace

void add_presets(engine::Registry& registry) {
  registry.add_preset(openrlhf(registry));
  registry.add_preset(verl(registry));
  registry.add_preset(trl(registry));
  registry.add_preset(nemo_rl(registry));
}

}  // namespace sluice::nodes
