#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "engine/schedule/stages/sample_credit.h"
#include "models/sample/generation.h"
#include "nodes/models/model_text.h"
#include "nodes/models/sampling/sampled_weights.h"
#include "nodes/rollout/generate_params.h"
#include "nodes/rollout/rollout_metrics.h"
#include "nodes/rollout/running_group.h"
#include "nodes/rollout/running_weights.h"
#include "nodes/rollout/tokenized_prompts.h"
#include "nodes/rollout/turns.h"

namespace sluice::nodes {

/// The node of type `generate` (GenerateParams says what it does). Samples run in the generation engine, turns and credit beside
/// it; this says which goes on when. One thread, that of its executor.
class Generate final : public engine::Rollout {
 public:
  static void describe(engine::Contract<GenerateParams>& contract);

  Generate(const GenerateParams& params, engine::NodeResources& resources);

  /// From here on samples are drawn from the iteration's policy version, or with [schedule] update = "immediately" from the
  /// newest one whenever there is another. Nothing of another iteration may be running.
  void begin_iteration(const engine::Iteration& iteration) override;

  /// False for a prompt that is to be dropped. Throws UserError for one that is empty, or too long.
  bool wants(const engine::Group& prompt) override;

  /// responses_per_prompt * (prompt + max_new_tokens).
  int64_t worst_tokens(const engine::Group& prompt) const override;

  /// The prompts, and room for the first tokens after them.
  int64_t least_tokens(const engine::Group& prompt) const override;

  void start(engine::Group prompt) override;
  void step(Sink& sink) override;
  bool idle() const override { return running_.empty(); }
  bool blocked() const override { return on_demand_ && credit_.blocked(); }
  void end_iteration(const engine::Iteration&) override { metrics_.end_iteration(); }

  /// The KV pool, which is allocated as a whole when the node is made.
  PoolBytes pool_bytes() const override { return {engine_.kv_bytes_held(), metrics_.most_kv_bytes()}; }

 private:
  bool is_baseline(int64_t sample) const { return sample == params_.samples_per_prompt; }
  models::Next judge(uint64_t id, std::span<const int64_t> tokens);
  engine::SampleCredit::Key key_of(uint64_t id) const;
  uint64_t id_of(const engine::SampleCredit::Key& key) const;
  int64_t most_tokens(int64_t prompt) const { return prompt + params_.max_new_tokens; }
  void go_on(Sink& sink);
  void change_weights();
  void resume(const Turns::Decision& decision);
  void take(models::SampleResult result, Sink& sink);
  void settle_credit(Sink& sink);
  void hand_on(std::map<int64_t, RunningGroup>::iterator complete, Sink& sink);

  const GenerateParams params_;
  const std::shared_ptr<const SampledWeights> sampled_;
  const std::shared_ptr<const SampledWeights> draft_;  // null: no model guesses
  const std::shared_ptr<const ModelText> text_;
  TokenizedPrompts prompts_;
  const uint64_t seed_;
  RolloutMetrics metrics_;
  const models::GenerationOptions options_;
  models::GenerationEngine engine_;
  Turns turns_;
  const bool on_demand_;                         // samples take credit as they grow, and may be preempted
  engine::SampleCredit credit_;                  // only then, as the next
  std::map<uint64_t, Turns::Decision> replies_;  // whose samples lack the credit for them
  RunningWeights weights_;
  const engine::KvAtUpdate update_kv_;
  std::map<int64_t, RunningGroup> running_;  // by group index
};

}  // namespace sluice::nodes
