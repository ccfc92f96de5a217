#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/objectives/preference/kto.h"
#include "nodes/train/iteration_step.h"

namespace sluice::nodes {

/// Trains a policy on samples that are desirable or not, one optimizer step an iteration (KTO, see objectives/preference/kto.h).
///
///   [nodes.train]
///   type = "train_kto"
///   inputs = ["reference"]
///   model = "actor"             # with an optimizer
///   beta = 0.1
///   desirable_weight = 1.0      # lambda_D
///   undesirable_weight = 1.0    # lambda_U
///   temperature = 1.0           # as in the node that computes the reference
///
/// Of each group the first sample is learned from, desirable where its score is above 0; all others are mismatched: their mean
/// log ratio over the iteration, or 0 where that is negative or of one row alone, is the baseline of all losses.
/// unpaired_preferences makes such groups. A group without a mismatched sample is a UserError. A sample is the sum over its
/// actions by their weights; one without weight counts nowhere.
///
/// A barrier: the baseline is that of the whole iteration, over all ranks, under the weights before the step, whatever the
/// micro-batches and passes are. It is computed in passes without gradients. Reads tokens[T], score[S], reference_logprobs[A],
/// and mask[A] if some node writes it. The loss is a mean over the samples that are learned from; an iteration without any makes
/// no step. A score, a loss or a gradient that is not finite is a UserError, before a weight has changed.
struct TrainKtoParams : KtoLoss {
  std::string model;
  engine::ScheduledNumber temperature = 1.0;
};

class TrainKto final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainKtoParams>& contract);

  TrainKto(const TrainKtoParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration& iteration) override { step_.begin(iteration); }
  void process(engine::MicroBatch&) override {}  // a barrier
  void gather(int64_t step, std::span<engine::MicroBatch> batches) override;
  void process_iteration(int64_t step, std::span<engine::MicroBatch> batches) override;
  void end_iteration(const engine::Iteration& iteration) override { step_.end(iteration); }

 private:
  // Samples of a micro-batch, cut into passes.
  using Passes = std::vector<std::vector<size_t>>;
  Passes passes(const engine::MicroBatch& batch, std::span<const size_t> samples) const;

  void add_to_baseline(const engine::MicroBatch& batch);
  void accumulate(const engine::MicroBatch& batch, const Passes& passes, bool is_last);

  // log policy - log reference of each of `samples`: [S'] double.
  at::Tensor log_ratios(const engine::MicroBatch& batch, std::span<const size_t> samples);
  void record(const at::Tensor& log_ratios, const at::Tensor& desirable, double beta);

  const TrainKtoParams params_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  IterationStep step_;
  double baseline_ = 0;
};

}  // namespace sluice::nodes
