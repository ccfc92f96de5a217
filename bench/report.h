#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::bench {

/// What a question's answer should be. Every bound that is set must hold.
struct Goal {
  std::optional<double> ours_at_most = {};
  std::optional<double> above_reference_at_most = {};  // median of ours minus that of the reference
  std::optional<double> ratio_at_most = {};
  std::optional<double> ratio_at_least = {};
};

/// One case: what was measured in turn, ours and the reference (A B A B), so that entry i of both saw the same machine.
struct Case {
  std::string bench;
  std::string name;
  std::string unit;
  std::vector<double> ours;       // one a repetition, not empty
  std::vector<double> reference;  // likewise; as many, or one if it is a constant
  Goal goal = {};
};

double median(std::vector<double> values);

/// One JSON object as a line on the standard output: bench, case, unit, the medians `ours` and `reference`, their lowest and
/// highest repetition, `ratio` (the median of ours / reference pair by pair), `goal` as text (null: the case only informs), and
/// whether it is `met`.
void print(const Case& result);

/// Whether the program was called with --smoke: everything once and small, to see that it works. Ends the program on any other
/// argument.
bool is_smoke(int argc, char** argv);

}  // namespace sluice::bench
