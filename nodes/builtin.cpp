#include "nodes/builtin.h"

#include <memory>

#include "nodes/advantages/adaptive_kl.h"
#include "nodes/advantages/distill.h"
#include "nodes/advantages/fixed_kl.h"
#include "nodes/advantages/gae.h"
#include "nodes/advantages/gdpo.h"
#include "nodes/advantages/grpo.h"
#include "nodes/advantages/kl.h"
#include "nodes/advantages/maxrl.h"
#include "nodes/advantages/opo.h"
#include "nodes/advantages/pass_at_k.h"
#include "nodes/advantages/reinforce_pp.h"
#include "nodes/advantages/remax.h"
#include "nodes/advantages/rloo.h"
#include "nodes/advantages/token_rewards.h"
#include "nodes/forward/logprobs.h"
#include "nodes/forward/logprobs_by_column.h"
#include "nodes/forward/logprobs_in_context.h"
#include "nodes/forward/values.h"
#include "nodes/models/language_model_type.h"
#include "nodes/models/model_device.h"
#include "nodes/objectives/cispo.h"
#include "nodes/objectives/clip_cov.h"
#include "nodes/objectives/dppo.h"
#include "nodes/objectives/gmpo.h"
#include "nodes/objectives/gspo.h"
#include "nodes/objectives/kl_cov.h"
#include "nodes/objectives/m2po.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/preference/dpo.h"
#include "nodes/objectives/preference/hinge.h"
#include "nodes/objectives/preference/ipo.h"
#include "nodes/objectives/preference/simpo.h"
#include "nodes/objectives/reinforce.h"
#include "nodes/objectives/sapo.h"
#include "nodes/objectives/value_clip.h"
#include "nodes/objectives/value_huber.h"
#include "nodes/objectives/value_mse.h"
#include "nodes/objectives/vespo.h"
#include "nodes/presets.h"
#include "nodes/rewards/combine_scores.h"
#include "nodes/rewards/compare_scores.h"
#include "nodes/rewards/cosine_reward.h"
#include "nodes/rewards/filter_groups.h"
#include "nodes/rewards/mask_samples.h"
#include "nodes/rewards/shape_score.h"
#include "nodes/rollout/environments/calculator.h"
#include "nodes/rollout/environments/no_environment.h"
#include "nodes/rollout/environments/process_environment.h"
#include "nodes/rollout/environments/tool_environment.h"
#include "nodes/rollout/generate.h"
#include "nodes/scorers/code/code_tests.h"
#include "nodes/scorers/exact_match.h"
#include "nodes/scorers/http/http_scorer.h"
#include "nodes/scorers/http/judge.h"
#include "nodes/scorers/json/json_schema.h"
#include "nodes/scorers/length_penalty.h"
#include "nodes/scorers/math/multiple_choice.h"
#include "nodes/scorers/math/numeric_match.h"
#include "nodes/scorers/python/python_scorer.h"
#include "nodes/scorers/regex_match.h"
#include "nodes/scorers/reward_model.h"
#include "nodes/sinks/evaluate_samples.h"
#include "nodes/sinks/write_dataset.h"
#include "nodes/sinks/write_jsonl.h"
#include "nodes/sources/jsonl_examples.h"
#include "nodes/sources/jsonl_prompts.h"
#include "nodes/sources/preference_pairs.h"
#include "nodes/sources/unpaired_preferences.h"
#include "nodes/train/sync_weights.h"
#include "nodes/train/train_dpo.h"
#include "nodes/train/train_kto.h"
#include "nodes/train/train_ppo.h"
#include "nodes/train/train_reward.h"
#include "nodes/train/train_sft.h"

namespace sluice::nodes {

void register_builtin(engine::Registry& registry) {
  registry.set_model_type(std::make_unique<LanguageModelType>());
  registry.add_device_kind(cuda_devices());

  registry.add<JsonlPrompts>();
  registry.add<JsonlExamples>();
  registry.add<PreferencePairs>();
  registry.add<UnpairedPreferences>();
  registry.add<Generate>();
  registry.add<ExactMatch>();
  registry.add<NumericMatch>();
  registry.add<MultipleChoice>();
  registry.add<RegexMatch>();
  registry.add<JsonSchema>();
  registry.add<LengthPenalty>();
  registry.add<CombineScores>();
  registry.add<ShapeScore>();
  registry.add<CosineReward>();
  registry.add<RewardModel>();
  registry.add<CompareScores>();
  registry.add<EvaluateSamples>();
  registry.add<PythonScorer>();
  registry.add<CodeTests>();
  registry.add<HttpScorer>();
  registry.add<Judge>();
  registry.add<Logprobs>();
  registry.add<LogprobsInContext>();
  registry.add<LogprobsByColumn>();
  registry.add<Values>();
  registry.add<FilterGroups>();
  registry.add<MaskSamples>();
  registry.add<TokenRewards>();
  registry.add<Kl>();
  registry.add<Gae>();
  registry.add<Grpo>();
  registry.add<Gdpo>();
  registry.add<Rloo>();
  registry.add<MaxRl>();
  registry.add<ReinforcePp>();
  registry.add<ReMax>();
  registry.add<Opo>();
  registry.add<PassAtK>();
  registry.add<Distill>();
  registry.add<TrainPpo>();
  registry.add<TrainSft>();
  registry.add<TrainDpo>();
  registry.add<TrainKto>();
  registry.add<TrainReward>();
  registry.add<SyncWeights>();
  registry.add<WriteJsonl>();
  registry.add<WriteDataset>();

  registry.add_component<Objective, PpoClip>();
  registry.add_component<Objective, Gspo>();
  registry.add_component<Objective, Gmpo>();
  registry.add_component<Objective, Cispo>();
  registry.add_component<Objective, Sapo>();
  registry.add_component<Objective, Dppo>();
  registry.add_component<Objective, Vespo>();
  registry.add_component<Objective, M2po>();
  registry.add_component<Objective, ClipCov>();
  registry.add_component<Objective, KlCov>();
  registry.add_component<Objective, Reinforce>();
  registry.add_component<ValueObjective, ValueClip>();
  registry.add_component<ValueObjective, ValueMse>();
  registry.add_component<ValueObjective, ValueHuber>();
  registry.add_component<KlController, FixedKl>();
  registry.add_component<KlController, AdaptiveKl>();
  registry.add_component<PreferenceObjective, Dpo>();
  registry.add_component<PreferenceObjective, Ipo>();
  registry.add_component<PreferenceObjective, Simpo>();
  registry.add_component<PreferenceObjective, Hinge>();

  registry.add_component<Environment, NoEnvironment>();
  registry.add_component<Environment, Calculator>();
  registry.add_component<Environment, ProcessEnvironment>();
  registry.add_component<Environment, ToolEnvironment>();

  add_presets(registry);
}

}  // namespace sluice::nodes
