#include "nodes/presets.h"

#include <initializer_list>

namespace sluice::nodes {
namespace {

using engine::Preset;

struct Line {
  const char* of;
  const char* key;
  decltype(engine::Value::data) value;
  const char* source;
};

Preset preset(const char* name, const char* summary, std::initializer_list<Line> lines) {
  Preset made(name, summary);
  for (const Line& line : lines) made.set(line.of, line.key, line.value, line.source);
  return made;
}

// Files are relative to the package of the system: openrlhf/, verl/, trl/, and the root of NeMo-RL.

Preset openrlhf() {
  return preset("openrlhf", "what OpenRLHF does by default (commit 3c3be6234e0c)",
                {
                    {"gae", "discount", 1.0, "cli/train_ppo_ray.py: --algo.advantage.gamma"},
                    {"gae", "lambda", 1.0, "cli/train_ppo_ray.py: --algo.advantage.lambd"},
                    {"gae", "whiten", "iteration", "trainer/ppo_utils/experience_maker.py: compute_advantages_and_returns"},
                    {"token_rewards", "kl_coefficient", 0.01, "cli/train_ppo_ray.py: --algo.kl.init_coef"},
                    {"token_rewards", "kl_estimator", "k1", "cli/train_ppo_ray.py: --algo.kl.estimator"},
                    {"objective:ppo_clip", "clip_low", 0.2, "cli/train_ppo_ray.py: --actor.eps_clip"},
                    {"objective:ppo_clip", "clip_high", 0.2, "cli/train_ppo_ray.py: --actor.eps_clip"},
                    {"objective:ppo_clip", "dual_clip", 0.0, "cli/train_ppo_ray.py: --actor.dual_clip is unset"},
                    {"value_objective:value_clip", "clip", 0.5, "cli/train_ppo_ray.py: --critic.value_clip"},
                    {"model.optimizer", "beta1", 0.9, "cli/train_ppo_ray.py: --actor.adam.betas"},
                    {"model.optimizer", "beta2", 0.95, "cli/train_ppo_ray.py: --actor.adam.betas"},
                    {"model.optimizer", "epsilon", 1e-8, "cli/train_ppo_ray.py: --actor.adam.eps"},
                    {"model.optimizer", "weight_decay", 0.0, "cli/train_ppo_ray.py: --actor.adam.weight_decay"},
                    {"model.optimizer", "clip_grad_norm", 1.0, "cli/train_ppo_ray.py: --actor.max_norm"},
                });
}

Preset verl() {
  return preset(
      "verl", "what verl does by default (commit b178a3cd56f5)",
      {
          {"gae", "discount", 1.0, "trainer/config/ppo_trainer.yaml: algorithm.gamma"},
          {"gae", "lambda", 1.0, "trainer/config/ppo_trainer.yaml: algorithm.lam"},
          {"gae", "whiten", "iteration", "trainer/ppo/core_algos.py: compute_gae_advantage_return"},
          {"token_rewards", "kl_coefficient", 0.0, "trainer/config/ppo_trainer.yaml: algorithm.use_kl_in_reward is off"},
          {"token_rewards", "kl_estimator", "k1", "trainer/config/ppo_trainer.yaml: algorithm.kl_penalty"},
          {"objective:ppo_clip", "clip_low", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_low"},
          {"objective:ppo_clip", "clip_high", 0.2, "trainer/config/actor/actor.yaml: clip_ratio_high"},
          {"objective:ppo_clip", "dual_clip", 3.0, "trainer/config/actor/actor.yaml: clip_ratio_c"},
          {"value_objective:value_clip", "clip", 0.5, "trainer/config/critic/critic.yaml: cliprange_value"},
          {"filter_groups", "drop_equal_scores", true, "trainer/config/algorithm.py: FilterGroupsConfig"},
          {"model.optimizer", "beta1", 0.9, "trainer/config/optim/fsdp.yaml: betas"},
          {"model.optimizer", "beta2", 0.999, "trainer/config/optim/fsdp.yaml: betas"},
          {"model.optimizer", "epsilon", 1e-8, "torch.optim.AdamW: eps"},
          {"model.optimizer", "weight_decay", 0.01, "trainer/config/actor/actor.yaml: optim.weight_decay"},
          {"model.optimizer", "clip_grad_norm", 1.0, "trainer/config/actor/dp_actor.yaml: grad_clip"},
      });
}

Preset trl() {
  return preset(
      "trl", "what TRL does by default (commit f2cd57710ae3)",
      {
          {"gae", "discount", 1.0, "experimental/ppo/ppo_config.py: gamma"},
          {"gae", "lambda", 0.95, "experimental/ppo/ppo_config.py: lam"},
          {"gae", "whiten", "iteration", "experimental/ppo/ppo_trainer.py: masked_whiten of the advantages"},
          {"token_rewards", "kl_coefficient", 0.05, "experimental/ppo/ppo_config.py: kl_coef"},
          {"token_rewards", "kl_estimator", "k1", "experimental/ppo/ppo_config.py: kl_estimator"},
          {"objective:ppo_clip", "clip_low", 0.2, "trainer/grpo_config.py: epsilon; experimental/ppo/ppo_config.py: cliprange"},
          {"objective:ppo_clip", "clip_high", 0.2, "trainer/grpo_config.py: epsilon_high is unset"},
          {"objective:ppo_clip", "dual_clip", 0.0, "trainer/grpo_config.py: delta is unset"},
          {"value_objective:value_clip", "clip", 0.2, "experimental/ppo/ppo_config.py: cliprange_value"},
          {"model.optimizer", "beta1", 0.9, "transformers.TrainingArguments: adam_beta1"},
          {"model.optimizer", "beta2", 0.999, "transformers.TrainingArguments: adam_beta2"},
          {"model.optimizer", "epsilon", 1e-8, "transformers.TrainingArguments: adam_epsilon"},
          {"model.optimizer", "weight_decay", 0.0, "transformers.TrainingArguments: weight_decay"},
          {"model.optimizer", "clip_grad_norm", 1.0, "transformers.TrainingArguments: max_grad_norm"},
      });
}

Preset nemo_rl() {
  return preset(
      "nemo_rl", "what NeMo-RL does by default (commit 7ea279abfbeb)",
      {
          {"gae", "discount", 1.0, "examples/configs/ppo_math_1B.yaml: adv_estimator.gae_gamma"},
          {"gae", "lambda", 0.95, "examples/configs/ppo_math_1B.yaml: adv_estimator.gae_lambda"},
          {"gae", "whiten", "iteration", "examples/configs/ppo_math_1B.yaml: adv_estimator.normalize_advantages"},
          {"token_rewards", "kl_coefficient", 0.0, "nemo_rl/algorithms/loss/loss_functions.py: use_kl_in_reward is off"},
          {"token_rewards", "kl_estimator", "k3", "nemo_rl/algorithms/loss/loss_functions.py: reference_policy_kl_type"},
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
  registry.add_preset(openrlhf());
  registry.add_preset(verl());
  registry.add_preset(trl());
  registry.add_preset(nemo_rl());
}

}  // namespace sluice::nodes
