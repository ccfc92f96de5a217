#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "cli/run_folder/growing_lines.h"
#include "cli/samples/recorded_samples.h"

namespace sluice::cli {

/// Which of the samples that a node has recorded, and in which order.
struct SampleChoice {
  std::optional<int64_t> iteration;  // nothing: the latest
  bool all_iterations = false;       // whatever `iteration` says
  std::string prompt;  // only of prompts that have this text in them; of ASCII, capitals and small letters are alike
  std::string sort;    // a field, or "length"; empty: as they were recorded
  bool lowest_first = false;
  size_t most = std::numeric_limits<size_t>::max();
};

/// What was chosen. `found`: how many there are, with those beyond `most`.
struct ChosenSamples {
  std::vector<Json> samples;
  size_t found = 0;
  int64_t latest = 0;  // iteration that was recorded
  Problems damage;     // of lines that are left out
};

/// Throws UserError: nothing was recorded, not of that iteration, or not the field that it asks for; with the key that records
/// it.
ChosenSamples choose_samples(const SampleRecord& record, GrowingLines& lines, const SampleChoice& choice);

struct SampledLength {
  size_t count = 0;
  const char* unit = "";  // "token" where something was recorded of each, else "character"
};

/// Of what was sampled. Nothing: it was not recorded.
std::optional<SampledLength> sampled_length(const Json& sample);

/// What a sample has to be sorted by: the number of a field, the mean of a list of numbers, or its length. Nothing: not recorded.
std::optional<double> sort_value(const Json& sample, const std::string& by);

/// "the run has not recorded 'kl'", and the key that records it.
[[noreturn]] void fail_because_not_recorded(const SampleRecord& record, const std::vector<std::string>& fields);

}  // namespace sluice::cli
