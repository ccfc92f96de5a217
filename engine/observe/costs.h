#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/numbers/bytes.h"
#include "engine/observe/lengths.h"

namespace sluice::engine {

/// What the work of one node takes, in microseconds. What does not apply to a node is 0.
struct NodeCosts {
  int threads = 1;  // cores of the executor that it was measured on

  // An ordinary node: each micro-batch, and the end of an iteration (optimizer step, publication). A barrier has the same work at
  // the end.
  double per_batch_us = 0;
  double per_token_us = 0;
  double per_iteration_us = 0;
  double per_checkpoint_us = 0;  // more, when the models are saved

  // A rollout: each step, each token that it samples, each prompt token of each sample.
  double per_step_us = 0;
  double per_sampled_token_us = 0;
  double per_prompt_token_us = 0;

  // One that guesses tokens before it samples them: how many of a sample in a step where it may, and how many of these are
  // sampled. What they take is in the three above.
  double drafted_per_step = 0;
  double kept_per_step = 0;

  double per_group_us = 0;  // a source without rollout: each group

  double kept_share = 1;  // a filter: of the groups

  bool operator==(const NodeCosts&) const = default;
};

/// Of all, each number by itself; costs of nothing where there are none.
NodeCosts mean_of(const std::vector<NodeCosts>& all);

/// The lengths of samples from one iteration on: policies learn to be brief, or long.
struct Lengths {
  int64_t first_iteration = 0;
  LengthHistogram prompt;    // of each group
  LengthHistogram response;  // of each sample

  bool operator==(const Lengths&) const = default;
};

/// What a rollout of a simulated pipeline guesses: see GuessRules (engine/simulation/guesses.h).
struct Guesses {
  int64_t samples = 0;                             // while no more of them decode, and no prompt is read; 0: whatever runs beside
  double drafted_per_step = 0, kept_per_step = 0;  // of a sample
  bool apart = false;      // what they take is not in the costs of the rollout: a row for each, and the model that guesses
  double draft_share = 0;  // of the work of the model that is sampled from, what that takes; 0: no model guesses

  bool operator==(const Guesses&) const = default;
};

/// What a simulation must know of the work that it does not do: `RUN/costs.json`.
struct Costs {
  std::string pipeline;
  int64_t iterations = 0;  // that were measured; 0: nothing was
  double seconds = 0;      // from the beginning of the run to the end of its last work
  double gap_us = 0;       // between two pieces of work of an executor that has more to do
  std::map<std::string, NodeCosts> nodes;
  std::vector<Lengths> lengths;                 // by first_iteration, ascending; the first is above 0 of a run that went on
  std::map<std::string, Guesses> guesses = {};  // by rollout; not in the file, since the pipeline that is simulated says it

  /// Those of an iteration; before the first, of the first. There must be some.
  const Lengths& lengths_of(int64_t iteration) const;

  bool operator==(const Costs&) const = default;
};

std::string costs_json(const Costs& costs);

/// Reads what costs_json wrote. Throws UserError naming `name` and the key that is wrong.
Costs parse_costs(const std::string& text, const std::string& name);

/// The costs of a node, for the mail between ranks.
void write_node_costs(ByteWriter& bytes, const NodeCosts& costs);
NodeCosts read_node_costs(ByteReader& bytes);

/// Of a run folder or a file. Throws UserError.
Costs read_costs(const std::filesystem::path& path);

}  // namespace sluice::engine
