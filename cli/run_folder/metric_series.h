#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "cli/run_folder/growing_lines.h"

namespace sluice::cli {

/// The metrics of a run, which may be writing them:
///   {"reward/score_mean": {"x": [iteration, ...], "y": [number, ...]}, ...}
/// One thread.
class RunSeries {
 public:
  /// `metrics`: metrics.jsonl of the run.
  explicit RunSeries(std::filesystem::path metrics) : lines_(std::move(metrics)) {}

  /// Reads what is new, but for lines that are damaged.
  Json now();

  /// Likewise, thinned out so that a page can hold it: each stretch of iterations keeps its lowest and its highest value, so that
  /// a spike stays one.
  Json thinned_now();

  /// What is wrong with the lines that were left out so far.
  const Problems& damage() const { return damage_; }

 private:
  using Point = std::pair<int64_t, double>;

  void read();

  GrowingLines lines_;
  size_t taken_ = 0;                                                 // lines
  std::vector<std::pair<std::string, std::vector<Point>>> metrics_;  // in the order of the file
  std::unordered_map<std::string, size_t> places_;                   // in metrics_, by name
  Problems damage_;
};

}  // namespace sluice::cli
