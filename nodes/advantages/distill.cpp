#include "nodes/advantages/distill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/text/strings.h"
#include "nodes/columns/action_mask.h"
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

void check_teachers(const DistillParams& params, engine::Findings& findings) {
  std::set<std::string> seen;
  for (const std::string& teacher : params.teacher_logprobs) {
    if (!seen.insert(teacher).second)
      findings.error("teacher_logprobs", "'" + teacher + "' is named twice", "give it a larger weight");
    if (teacher != params.logprobs) continue;
    findings.error("teacher_logprobs",
                   "the teacher's and the policy's log-probabilities are the same column: every advantage is 0",
                   "name the column of a node that asks the teacher (type = \"logprobs\", writes = \"teacher_logprobs\")");
  }
  if (params.teacher_logprobs.empty())
    findings.error("teacher_logprobs", "there is no teacher", "name the column of a node that asks one");
  if (params.teacher_logprobs.size() == 1 && findings.changed("mean"))
    findings.without_effect("mean", "mean has no effect with one teacher", "remove it");
  if (params.weights.empty()) return;
  if (params.weights.size() != params.teacher_logprobs.size()) {
    findings.error("weights",
                   plural(static_cast<int64_t>(params.weights.size()), "weight") + " for " +
                       plural(static_cast<int64_t>(params.teacher_logprobs.size()), "teacher"),
                   "one weight for each teacher, in the same order");
  } else if (!std::ranges::all_of(params.weights, [](double weight) { return weight > 0; })) {
    findings.error("weights", "a weight is not above 0", "leave such a teacher out");
  }
}

// log(exp(a) + exp(b))
double log_sum(double a, double b) {
  constexpr double kImpossible = -std::numeric_limits<double>::infinity();
  if (a == kImpossible) return b;
  if (b == kImpossible) return a;
  const double most = std::max(a, b);
  return most + std::log(std::exp(a - most) + std::exp(b - most));
}

}  // namespace

void Distill::describe(engine::Contract<DistillParams>& c) {
  using P = DistillParams;
  c.type("distill", "how much likelier a teacher finds each action than the policy that sampled it");
  c.param("teacher_logprobs", &P::teacher_logprobs).doc("action columns with the log-probabilities of each teacher");
  c.param("weights", &P::weights).doc("of several teachers, as shares of their sum; empty: all alike");
  c.param("mean", &P::mean).doc("what several teachers are together: arithmetic: their mixture, geometric: what all find likely");
  c.param("logprobs", &P::logprobs).doc("action column with the policy's log-probabilities");
  c.param("clip", &P::clip).above(0).doc("bounds the difference of an action; unset: not at all");
  c.param("discount", &P::discount).between(0, 1).doc("weight of the difference one action later; 0: each action by itself");
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    for (const std::string& teacher : params.teacher_logprobs) needs.reads.push_back({teacher, DType::kFloat32, Extent::kAction});
  });
  c.reads_named(&P::logprobs, DType::kFloat32, Extent::kAction);
  c.reads_if_written(columns::kMask);
  c.writes(columns::kAdvantages);
  c.metric("reference/teacher_kl_mean", engine::Metric::kMean, "mean over the actions of log policy - log teacher, not clipped");
  c.check(check_teachers);
}

Distill::Distill(const DistillParams& params, engine::NodeResources& resources)
    : params_(params), weights_(params.weights), metrics_(*resources.metrics) {
  if (weights_.empty()) weights_.assign(params.teacher_logprobs.size(), 1);
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
}

std::vector<double> Distill::teachers(const MicroBatch& batch) const {
  const bool mixes = params_.mean == TeacherMean::kArithmetic;
  std::vector<double> logprobs;
  for (size_t k = 0; k < weights_.size(); ++k) {
    const auto of_teacher = read_actions(batch, params_.teacher_logprobs[k]);  // [A]
    if (weights_.size() == 1) return {of_teacher.begin(), of_teacher.end()};
    logprobs.resize(of_teacher.size(), mixes ? -std::numeric_limits<double>::infinity() : 0.0);
    for (size_t a = 0; a < of_teacher.size(); ++a) {
      const double logprob = of_teacher[a];
      logprobs[a] = mixes ? log_sum(logprobs[a], std::log(weights_[k]) + logprob) : logprobs[a] + weights_[k] * logprob;
    }
  }
  return logprobs;
}

void Distill::process(MicroBatch& batch) {
  const std::vector<double> teacher = teachers(batch);        // [A]
  const auto policy = read_actions(batch, params_.logprobs);  // [A]
  auto advantages = batch.write(columns::kAdvantages);        // [A], zero
  const ActionMask mask(batch);

  double kl_sum = 0;
  for (const Range actions : batch.actions_by_sample()) {
    double advantage = 0;
    for (size_t t = actions.end; t-- > actions.begin;) {
      if (!mask.keeps(t)) continue;
      const double difference = teacher[t] - policy[t];
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
