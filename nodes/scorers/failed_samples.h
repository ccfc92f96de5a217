#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/dropped_samples.h"
#include "nodes/columns/score_columns.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// What becomes of a sample that could not be scored.
enum class OnError {
  kFail,   // the run ends
  kSkip,   // it is masked, so that it teaches nothing, and no metric counts it; in its column stands the mean of its group's
           // others, or 0
  kValue,  // it scores error_value
};

constexpr auto enum_names(OnError) {
  return std::array{std::pair{OnError::kFail, "fail"}, std::pair{OnError::kSkip, "skip"}, std::pair{OnError::kValue, "value"}};
}

/// What scorers have that cannot score every text, because their work is done elsewhere or because a pattern may give up on it:
///
///   on_error = "fail"      # "skip": it is masked, "value": error_value
///   error_value = 0.0
///
/// Where a text alone can be the cause, the default is "value": what was sampled must not end a run.
struct OnErrorParams {
  OnError on_error = OnError::kFail;
  double error_value = 0;
};

/// Declares the parameters, the metric reward/NODE/failed_samples, and with "skip" the column mask[A] and the shares that masked
/// samples have.
template <class P>
void describe_on_error(engine::Contract<P>& c) {
  c.param("on_error", &P::on_error)
      .doc(
          "a sample that could not be scored: fail: ends the run, skip: is masked, so it has no part in losses and "
          "statistics, value: scores error_value");
  c.param("error_value", &P::error_value)
      .between(-kLargestScore, kLargestScore)
      .doc("with on_error = \"value\": the score of a sample that could not be scored");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.on_error != OnError::kValue && findings.changed("error_value")) {
      findings.without_effect("error_value", "error_value has no effect without on_error = \"value\"");
    }
  });
  c.metric("reward/NODE/failed_samples", engine::Metric::kSum,
           "samples that could not be scored, where there were any, with on_error = \"skip\" or \"value\"");
  c.writes_by_product_if([](const P& params) { return params.on_error == OnError::kSkip; }, columns::kMask);
  describe_dropped_samples(c, "with on_error = \"skip\", share of the samples that could not be scored, and are masked");
}

/// The samples of a micro-batch that could not be scored.
class FailedSamples {
 public:
  /// `what` names the failure as an end of a sentence would: "reward.py raised KeyError: 'unit' (reward.py:18)".
  void add(size_t sample, std::string what) { failed_.push_back({sample, std::move(what)}); }

  /// Gives them their scores, and records and logs how many there were; with "skip" masks them, and records the share of their
  /// actions too, since long ones may fail more often, as by a limit of time. Throws UserError with on_error = "fail". Both
  /// name the first by group and place in it, with the beginning of its text.
  void settle(const OnErrorParams& params, const std::string& node, engine::MicroBatch& batch, ScoredTexts& texts,
              engine::MetricsRecorder& metrics) const;

 private:
  void mask(const std::string& node, size_t texts, engine::MicroBatch& batch, engine::MetricsRecorder& metrics) const;

  std::vector<std::pair<size_t, std::string>> failed_;
};

/// Scores the texts one by one; one on which a regular expression gives up is added to `failed`.
void score_each(ScoredTexts& texts, FailedSamples& failed, FunctionRef<float(size_t)> score_of);

}  // namespace sluice::nodes
