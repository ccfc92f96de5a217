#pragma once

#include <string>
#include <vector>

#include "engine/simulation/simulation.h"

namespace sluice::cli {

/// What `simulate` prints: one pipeline as it is, then with other settings.
struct SimulationView {
  struct Variant {
    std::string setting;  // KEY=VALUE, or several with a space between them; empty: as it is
    engine::SimulationResult result;
    int ranks = 1;         // that it takes, with those that assist
    bool guesses = false;  // some node does
  };

  std::string pipeline;
  std::string costs_from;       // what --costs named; empty: estimated
  double gflops = 0;            // that an estimate assumes for each core
  double measured_seconds = 0;  // of the run that the costs are from
  int64_t measured_iterations = 0;
  std::vector<Variant> variants;  // at least one

  /// The time of a variant, where that of the pipeline as it is is 1.
  double ratio(const Variant& variant) const {
    const double base = variants.front().result.seconds;
    return base > 0 ? variant.result.seconds / base : 0;
  }
};

/// For people: how long, what each executor and node did, what was in flight over the time, then a table of the variants.
/// With roles what the ranks of each waited for.
std::string simulation_text(const SimulationView& view);

/// The same as one JSON object.
std::string simulation_json(const SimulationView& view);

}  // namespace sluice::cli
