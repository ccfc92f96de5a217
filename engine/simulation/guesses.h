#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/observe/costs.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// What a rollout's table says of tokens that it guesses before it samples them.
struct GuessRules {
  int64_t tokens = 0;   // of a sample in a step, at most
  int64_t samples = 0;  // while no more of them decode, and no prompt is read; 0: whatever runs beside
  std::string draft;    // the model that guesses; empty: the texts
};

/// Fills in Costs::guesses of the rollouts that have `rules`, by name: how much is guessed in a step, how much of that is right,
/// and what it costs. As it was measured, where it was; else by `right`, the share of guesses after right ones that are right:
/// then as many are made as are right together three times in ten, and each costs as much as a token, and what the draft takes by
/// its parameters. Where nothing says how often guesses are right, none is made. Returns what a person must know of that, a line
/// each.
std::vector<std::string> take_guesses(const Plan& plan, const std::map<std::string, GuessRules>& rules,
                                      std::optional<double> right, Costs& costs);

}  // namespace sluice::engine
