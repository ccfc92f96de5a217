#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/trained_model.h"
#include "nodes/train/optimizer_step.h"
#include "nodes/train/router_metrics.h"

namespace sluice::nodes {

/// One optimizer step an iteration, on one model: what a trainer has beside its loss. Gradients of sums accumulate pass by pass
/// as micro-batches arrive, and are divided once, by the count over which the loss of the whole iteration is a mean. So the step
/// does not depend on how groups are packed into micro-batches and these are cut into passes. Used by one thread, in this order:
///
///   begin(iteration)
///   of each micro-batch that has something to learn from:
///     enter(batch)
///     of each pass: begin_pass(...), accumulate_gradient(loss, ...)
///     record(loss_sum, count), of the micro-batch or of each pass
///   make(), once totals can be read
///   end(iteration)
class IterationStep {
 public:
  /// `model`: its name. `group`: of the metrics GROUP/loss, GROUP/grad_norm and GROUP/learning_rate. `total`: where counts are
  /// added. The contract declares them, with describe().
  IterationStep(const std::string& model, std::string group, std::string total, engine::NodeResources& resources);

  /// Declares GROUP/learning_rate and the metrics of the routers of the model that the key `model` names. GROUP/loss,
  /// GROUP/grad_norm (describe_gradient_norm) and the total are for the node to declare.
  template <class P>
  static void describe(engine::Contract<P>& c, const std::string& group) {
    describe_learning_rate(c, group);
    RouterMetrics::describe(c, "model");
  }

  /// The weights that are trained, for the passes.
  const ForwardModel& forward() const { return model_->forward(); }

  /// Tokens of a pass, at the most.
  int64_t pass_tokens() const { return pass_tokens_; }

  /// Sets the learning rate, and records it.
  void begin(const engine::Iteration& iteration);

  /// Gradients are of this micro-batch from now on.
  void enter(const engine::MicroBatch& batch) { model_->enter_slot(batch.slot()); }

  /// `counted`: how much the loss counts each sample of the pass. `is_last`: no pass after it adds to the step on this rank.
  void begin_pass(std::vector<double> counted, bool is_last);

  /// Records a loss, the sum over `count` > 0 of what it is a mean over, and what routers did in the passes. Adds `count` to the
  /// total.
  void record(double loss_sum, double count);

  /// The step, if there is something to learn from; returns whether there is. Throws as step_optimizer() does.
  bool make();

  /// Warns if no step was made.
  void end(const engine::Iteration& iteration) const;

 private:
  const std::shared_ptr<TrainedModel> model_;
  const std::string group_;
  const std::string total_;
  const int64_t pass_tokens_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  RouterMetrics router_metrics_;
  bool made_ = false;  // in this iteration
};

}  // namespace sluice::nodes
