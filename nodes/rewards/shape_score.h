#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/rewards/running_moments.h"

namespace sluice::nodes {

/// The scores whose standard deviation (and mean) a score is measured by.
enum class ScoreScale {
  kNone,       // none
  kPast,       // of all finished iterations
  kRunning,    // of all iterations up to and including this one
  kIteration,  // of this iteration
};

constexpr auto enum_names(ScoreScale) {
  return std::array{std::pair{ScoreScale::kNone, "none"}, std::pair{ScoreScale::kPast, "past"},
                    std::pair{ScoreScale::kRunning, "running"}, std::pair{ScoreScale::kIteration, "iteration"}};
}

/// Brings a score into a range that a trainer works well with:  clip(scale * (x - mean) / deviation + offset).
///
///   [nodes.shaped]
///   type = "shape_score"
///   inputs = ["reward_model"]
///   reads = "raw_score"
///   writes = "score"
///   normalize = "running"   # divides by the standard deviation of all scores so far; "past", "iteration", "none"
///   center = true           # subtracts their mean, too
///   scale = 1.0
///   offset = 0.0
///   clip = 5.0              # to [-clip, clip], at the end; unset: none
///
/// "running" counts this iteration in, as the score scaling of PPO for summaries does (Stiennon et al. 2020; use_score_scaling of
/// TRL); "iteration" makes batch statistics. Both make the node a barrier: nothing leaves before the iteration's last micro-batch
/// is in. "past" holds nothing up, and uses the iterations before; the first one is left as it is. The statistics are over
/// samples, with n - 1, and do not depend on how groups are packed into micro-batches. They are saved with the run. Where
/// fewer than two scores were seen, or all were equal, the deviation counts as 1.
///
/// Reads `reads`[S], and mask[A] where a node writes it; writes `writes`[S]  (S: samples, A: actions). Masked samples get their
/// score and have no part in statistics and metrics. A score that is not finite, or becomes too large for float32, is a UserError
/// that names column, group and sample.
struct ShapeScoreParams {
  std::string reads = "raw_score";
  std::string writes = "score";
  ScoreScale normalize = ScoreScale::kNone;
  bool center = false;
  double scale = 1;
  double offset = 0;
  std::optional<double> clip;
};

class ShapeScore final : public engine::Node {
 public:
  static void describe(engine::Contract<ShapeScoreParams>& contract);

  ShapeScore(const ShapeScoreParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics), totals_(*resources.totals) {}

  void process(engine::MicroBatch& batch) override;
  void gather(int64_t step, std::span<engine::MicroBatch> batches) override;
  void process_iteration(int64_t step, std::span<engine::MicroBatch> batches) override;
  void end_iteration(const engine::Iteration& iteration) override;
  void save(engine::StateWriter& state) const override { moments_.save("scores", state); }
  void load(const engine::StateReader& state) override { moments_.load("scores", state); }

 private:
  void note(const engine::MicroBatch& batch);
  void shape(engine::MicroBatch& batch);

  const ShapeScoreParams params_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  RunningMoments moments_;
};

}  // namespace sluice::nodes
