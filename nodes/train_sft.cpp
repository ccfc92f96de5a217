#include "nodes/train_sft.h"

#include "nodes/columns.h"
#include "nodes/forward.h"
#include "nodes/optimizer_step.h"
#include "nodes/ragged.h"

namespace sluice::nodes {

void TrainSft::describe(engine::Contract<TrainSftParams>& c) {
  c.type("train_sft", "one optimizer step an iteration on the cross entropy of the actions");
  c.model("model", &TrainSftParams::model, engine::ModelUse::kUpdates, "language_model").required().doc("the model to train");
  c.reads(columns::kTokens);
  c.metric("loss", "mean cross entropy of an action, in nats");
  c.metric("grad_norm", "norm of all gradients before clipping");
}

TrainSft::TrainSft(const TrainSftParams& params, engine::NodeResources& resources)
    : model_(language_model(resources, params.model)), metrics_(*resources.metrics), reducer_(*resources.reducer) {}

void TrainSft::process(engine::MicroBatch& batch) {
  if (batch.actions() == 0) return;
  const RaggedSamples samples = all_samples(batch.read(columns::kTokens), batch.layout());
  const at::Tensor loss_sum = -policy_logprobs(model_->transformer(), samples, 1.0).sum();
  const auto count = static_cast<double>(samples.actions);
  metrics_.mean("loss", accumulate_gradient(loss_sum, "loss") / count, count);
  actions_ += count;
}

void TrainSft::end_iteration(const engine::Iteration&) {
  double actions = actions_;
  reducer_.sum({&actions, 1});
  if (actions > 0) metrics_.value("grad_norm", step_optimizer(*model_, actions));
}

}  // namespace sluice::nodes
