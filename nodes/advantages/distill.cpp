#include "nodes/advantages/distill.h"

#include <algorithm>

#include "nodes/advantages/action_mask.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {

using engine::DType;
using engine::Extent;
using engine::MicroBatch;
using engine::Range;

namespace {

std::span<const float> read_actions(const MicroBatch& batch, const std::string& column) {
  return batch.read(engine::Column<float>{column.c_str(), Extent::kAction});
}

}  // namespace

void Distill::describe(engine::Contract<DistillParams>& c) {
  using P = DistillParams;
  c.type("distill", "how much likelier a teacher finds each action than the policy that sampled it");
  c.param("teacher_logprobs", &P::teacher_logprobs).doc("action column with the teacher's log-probabilities");
  c.param("logprobs", &P::logprobs).doc("action column with the policy's log-probabilities");
  c.param("clip", &P::clip).above(0).doc("bounds the difference of an action; unset: not at all");
  c.param("discount", &P::discount).between(0, 1).doc("weight of the difference one action later; 0: each action by itself");
  c.reads_named(&P::teacher_logprobs, DType::kFloat32, Extent::kAction);
  c.reads_named(&P::logprobs, DType::kFloat32, Extent::kAction);
  c.reads_if_written(columns::kMask);
  c.writes(columns::kAdvantages);
  c.metric("reference/teacher_kl_mean", engine::Metric::kMean, "mean over the actions of log policy - log teacher, not clipped");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.teacher_logprobs != params.logprobs) return;
    findings.error("teacher_logprobs",
                   "the teacher's and the policy's log-probabilities are the same column: every advantage is 0",
                   "name the column of a node that asks the teacher (type = \"logprobs\", writes = \"teacher_logprobs\")");
  });
}

void Distill::process(MicroBatch& batch) {
  const auto teacher = read_actions(batch, params_.teacher_logprobs);  // [A]
  const auto policy = read_actions(batch, params_.logprobs);           // [A]
  auto advantages = batch.write(columns::kAdvantages);                 // [A], zero
  const ActionMask mask(batch);

  double kl_sum = 0;
  for (const Range actions : batch.actions_by_sample()) {
    double advantage = 0;
    for (size_t t = actions.end; t-- > actions.begin;) {
      if (!mask.keeps(t)) continue;
      const double difference = static_cast<double>(teacher[t]) - policy[t];
      kl_sum -= mask.weight(t) * difference;
      const double clipped = params_.clip ? std::clamp(difference, -*params_.clip, *params_.clip) : difference;
      advantage = params_.discount == 0 ? clipped : clipped + params_.discount * advantage;
      advantages[t] = static_cast<float>(advantage);
    }
  }
  const double count = mask.total(batch.actions());
  metrics_.mean("reference/teacher_kl_mean", kl_sum / count, count);
}

}  // namespace sluice::nodes
