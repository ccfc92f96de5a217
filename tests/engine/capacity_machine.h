#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sluice::engine::testing {

// The rules by which groups are admitted, packed, filtered and released, as a machine with nothing else: no threads, no data, no
// code of the engine. Small enough that every order of events, every size and every verdict can be tried.

enum class Use {
  kNone,
  kReadsLive,
  kTrains,
  kPublishes
};  // of the one model, which the rollout samples from if a step trains it

/// An ordinary node.
struct Step {
  std::vector<int> inputs;  // earlier steps; empty: takes what the packer makes
  bool reads = true;        // reads columns
  bool barrier = false;
  int draws = 0;               // 0: no filter; 1: drops groups; more: has them replaced, at most draws x groups drawn
  int oversample_tenths = 10;  // so many tenths of the missing groups are drawn in a round
  Use use = Use::kNone;
};

/// A small pipeline. Sizes are tokens of a group: with a rollout of the credit that it asks for, and it may end with any less. On
/// demand that is the credit that it asks for at first; it may grow up to the worst, and whoever is younger gives way.
struct Machine {
  int groups = 1;
  int least = 1;
  int worst = 1;
  int micro_batch = 1;
  int iterations = 1;
  int lag = 0;
  bool rollout = false;
  bool on_demand = false;  // with a rollout
  std::vector<Step> steps;
};

std::string describe(const Machine& machine);

/// One event.
struct Move {
  enum class Kind { kBegin, kAdmit, kGrow, kRestart, kFinish, kProcess };
  Kind kind = Kind::kBegin;
  int which = 0;   // kGrow, kRestart, kFinish: place among the admitted; kProcess: step
  int tokens = 0;  // kAdmit: credit; kFinish: size
  int packet = 0;  // kProcess: place among the packets
  int passes = 0;  // kProcess of a filter: bit by group, those that it keeps

  bool operator==(const Move&) const = default;
};

/// What a search found.
struct Finding {
  bool stalls = false;
  std::vector<Move> trace;  // to the stall
  int64_t states = 0;
  int most_in_flight = 0;
  int largest_micro_batch = 0;
  int most_drawn = 0;  // in an iteration
  std::vector<int>
      most_held;  // by step: a barrier what it collects, a join what waits for the other inputs, others a micro-batch
};

/// Tries everything, or goes on to the first stall. Throws std::runtime_error if more tokens than the budget were in flight.
Finding search(const Machine& machine, int budget);

/// Follows the trace move by move; true if each was possible and nothing is possible at the end though the run is not over.
/// `tell` gets a line about each move and one about the end.
bool replay(const Machine& machine, int budget, const std::vector<Move>& trace,
            const std::function<void(const std::string&)>& tell);

}  // namespace sluice::engine::testing
