#pragma once

#include <cstdint>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "models/sample/generation.h"
#include "nodes/rollout/generate_params.h"
#include "nodes/rollout/running_group.h"

namespace sluice::nodes {

/// What `generate` tells of its samples and its steps. Belongs to the rollout; one thread.
class RolloutMetrics {
 public:
  static void describe(engine::Contract<GenerateParams>& contract);

  RolloutMetrics(const GenerateParams& params, const engine::NodeResources& resources);

  /// Of a group as a whole when it is complete, and nothing between: it goes with the group to the rank that it was made for.
  void record(const RunningGroup& group);

  void record_step(const models::StepWork& work);
  void record_dropped_prompt();
  void record_weight_update();
  void record_preempted(int64_t recomputed_tokens);

  /// Bytes of the pool that were used at a time.
  void record_kv(int64_t bytes);
  int64_t most_kv_bytes() const { return most_kv_bytes_; }

  /// What can be counted is told of every iteration, also of one without.
  void end_iteration();

 private:
  bool guesses() const { return params_.speculation != Speculation::kNone; }
  bool drops_prompts() const { return params_.prompt_too_long == TooLong::kDrop; }
  void record(const Response& response);
  void record_environment(const Turns::Summary& summary);
  void record_lag(const Response& response, int64_t iteration);
  void check_declared(const std::string& count) const;

  const GenerateParams params_;
  const bool weights_may_change_;  // while samples run
  const bool on_demand_;           // samples may be preempted
  engine::MetricsRecorder& metrics_;
  int64_t iteration_kv_bytes_ = 0;
  int64_t most_kv_bytes_ = 0;  // of all iterations
};

}  // namespace sluice::nodes
