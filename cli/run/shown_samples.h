#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// Keeps prompt, response and score of two samples of some iterations, to be shown: the first samples of the first two groups of
/// the first micro-batch, or of its only group. It reads what nodes have written and changes nothing. Thread-safe.
class ShownSamples final : public engine::WorkObserver {
 public:
  /// Of every so many iterations, the first among them; at least 1.
  explicit ShownSamples(int64_t every) : every_(every) {}

  /// Whether there is anything to show in a run of `plan`.
  static bool possible(const engine::Plan& plan);

  void wrote(const engine::WrittenColumns& columns) override;

  /// Two lines a sample, each at most `width` cells, with escapes for what could steer a terminal; empty for an iteration that is
  /// not shown. The iteration is over: its samples are forgotten.
  std::string take(int64_t iteration, size_t width);

 private:
  struct Sample {
    int64_t group = 0;    // its index in the iteration
    size_t of_group = 0;  // which of the group's samples
    std::string prompt = {};
    std::string response = {};
    std::optional<float> score = {};
  };

  bool is_shown(int64_t iteration) const { return iteration % every_ == 0; }

  const int64_t every_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<Sample>> samples_;  // by iteration
};

}  // namespace sluice::cli
