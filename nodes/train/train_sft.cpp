#include "nodes/train/train_sft.h"

#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "nodes/columns/columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/passes.h"
#include "nodes/forward/ragged.h"

namespace sluice::nodes {
namespace {

constexpr const char* kWeightTotal = "weights";  // of actions: what the loss is a mean over

// The samples that are learned from, how much each action counts, and what the sum is divided by.
struct Learned {
  std::vector<size_t> samples;
  std::vector<float> weights;  // [A] of the micro-batch
  double count = 0;
};

Learned learned_of(const engine::MicroBatch& batch, SftLoss loss) {
  Learned learned{.samples = {}, .weights = std::vector<float>(batch.actions(), 1.0f)};
  if (batch.has(columns::kMask.spec())) std::ranges::copy(batch.read(columns::kMask), learned.weights.begin());
  size_t sample = 0;
  for (const engine::Range actions : batch.actions_by_sample()) {
    const auto weights = std::span(learned.weights).subspan(actions.begin, actions.size());
    if (std::ranges::any_of(weights, [](float weight) { return weight != 0; })) {
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      const bool by_sample = loss == SftLoss::kSampleMean;
      learned.samples.push_back(sample);
      learned.count += by_sample ? 1 : total;
      for (float& weight : weights) weight = by_sample ? static_cast<float>(weight / total) : weight;
    }
    ++sample;
  }
  return learned;
}

}  // namespace

void TrainSft::describe(engine::Contract<TrainSftParams>& c) {
  using P = TrainSftParams;
  c.type("train_sft", "one optimizer step an iteration on the cross entropy of the actions");
  c.model("model", &P::model, engine::ModelUse::kUpdates, "language_model").required().doc("the model to train");
  c.param("loss", &P::loss).doc("token_mean: a mean over all actions, sample_mean: over the samples' own means");
  c.reads(columns::kTokens);
  c.reads_if_written(columns::kMask);
  c.total(kWeightTotal);
  c.metric("policy/loss", engine::Metric::kMean,
           "mean cross entropy, in nats: of an action, or over the samples of their own means");
  describe_gradient_norm(c, "policy");
  IterationStep::describe(c, "policy");
}

TrainSft::TrainSft(const TrainSftParams& params, engine::NodeResources& resources)
    : params_(params), step_(params.model, "policy", kWeightTotal, resources) {}

void TrainSft::process(engine::MicroBatch& batch) {
  const Learned learned = learned_of(batch, params_.loss);
  if (learned.samples.empty()) return;
  step_.enter(batch);
  double loss_sum = 0;
  const std::vector<std::vector<size_t>> passes = passes_of(batch.layout(), learned.samples, step_.pass_tokens());
  for (const std::vector<size_t>& pass : passes) {
    const bool is_last = batch.is_last() && &pass == &passes.back();
    step_.begin_pass(counted_actions(batch.layout(), learned.weights, pass), is_last);
    const RaggedSamples samples = some_samples({batch.read(columns::kTokens)}, batch.layout(), pass);
    const at::Tensor weights = action_tensor(learned.weights, batch.layout(), pass);  // [A']
    const at::Tensor logprobs = policy_logprobs(step_.forward(), samples, 1.0);       // [A']
    const at::Tensor counted = at::where(weights.ne(0), logprobs, at::zeros({}, logprobs.options()));
    loss_sum += accumulate_gradient(counted.mul(weights).sum().neg(), "loss");
  }
  step_.record(loss_sum, learned.count);
}

void TrainSft::end_iteration(const engine::Iteration& iteration) {
  step_.make();
  step_.end(iteration);
}

}  // namespace sluice::nodes
