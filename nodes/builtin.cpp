#include "nodes/builtin.h"

#include <memory>

#include "nodes/scorers/exact_match.h"
#include "nodes/filter_groups.h"
#include "nodes/advantages/gae.h"
#include "nodes/generate.h"
#include "nodes/jsonl_examples.h"
#include "nodes/jsonl_prompts.h"
#include "nodes/language_model_type.h"
#include "nodes/logprobs.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/reinforce.h"
#include "nodes/objectives/value_clip.h"
#include "nodes/objectives/value_mse.h"
#include "nodes/scorers/code_tests.h"
#include "nodes/scorers/http_scorer.h"
#include "nodes/scorers/python_scorer.h"
#include "nodes/sync_weights.h"
#include "nodes/advantages/token_rewards.h"
#include "nodes/train_ppo.h"
#include "nodes/train_sft.h"
#include "nodes/values.h"
#include "nodes/write_jsonl.h"

namespace sluice::nodes {

void register_builtin(engine::Registry& registry) {
  registry.set_model_type(std::make_unique<LanguageModelType>());

  registry.add<JsonlPrompts>();
  registry.add<JsonlExamples>();
  registry.add<Generate>();
  registry.add<ExactMatch>();
  registry.add<PythonScorer>();
  registry.add<CodeTests>();
  registry.add<HttpScorer>();
  registry.add<Logprobs>();
  registry.add<Values>();
  registry.add<FilterGroups>();
  registry.add<TokenRewards>();
  registry.add<Gae>();
  registry.add<TrainPpo>();
  registry.add<TrainSft>();
  registry.add<SyncWeights>();
  registry.add<WriteJsonl>();

  registry.add_component<Objective, PpoClip>();
  registry.add_component<Objective, Reinforce>();
  registry.add_component<ValueObjective, ValueClip>();
  registry.add_component<ValueObjective, ValueMse>();
}

}  // namespace sluice::nodes
