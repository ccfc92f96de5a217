#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// What becomes of a sample that could not be scored.
enum class OnError {
  kFail,   // the run ends
  kSkip,   // it scores the mean of its group's others, so that it teaches nothing; 0 where none of the group was scored
  kValue,  // it scores error_value
};

constexpr auto enum_names(OnError) {
  return std::array{std::pair{OnError::kFail, "fail"}, std::pair{OnError::kSkip, "skip"}, std::pair{OnError::kValue, "value"}};
}

/// What scorers whose work is done elsewhere have beside the parameters of every scorer:
///
///   on_error = "fail"      # "skip": as if it had scored what its group scored, "value": error_value
///   error_value = 0.0
struct OnErrorParams {
  OnError on_error = OnError::kFail;
  double error_value = 0;
};

/// Declares the parameters and the figure NODE/failed_samples.
template <class P>
void describe_on_error(engine::Contract<P>& c) {
  c.param("on_error", &P::on_error)
      .doc(
          "a sample that could not be scored: fail: ends the run, skip: scores the mean of its group's others, value: "
          "error_value");
  c.param("error_value", &P::error_value).doc("with on_error = \"value\": the score of a sample that could not be scored");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.on_error != OnError::kValue && findings.changed("error_value")) {
      findings.without_effect("error_value", "error_value has no effect without on_error = \"value\"");
    }
  });
  c.metric("NODE/failed_samples", "samples that could not be scored, with on_error = \"skip\" or \"value\"");
}

/// The samples of a micro-batch that could not be scored.
class FailedSamples {
 public:
  /// `what` names the failure as an end of a sentence would: "reward.py raised KeyError: 'unit' (reward.py:18)".
  void add(size_t sample, std::string what) { failed_.push_back({sample, std::move(what)}); }

  /// Gives them their scores, and records and logs how many there were. Throws UserError of the first with on_error = "fail".
  void settle(const OnErrorParams& params, const std::string& node, ScoredTexts& texts, engine::MetricsRecorder& metrics) const;

 private:
  std::vector<std::pair<size_t, std::string>> failed_;
};

}  // namespace sluice::nodes
