#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nodes/forward/passes.h"

namespace sluice::nodes {

/// How units of samples that have one loss together, such as pairs, are computed in passes.
template <class Unit>
struct UnitPasses {
  std::vector<std::vector<Unit>> together;  // passes of whole units, cut as cut_into_passes() does
  std::vector<Unit> apart;                  // those that do not fit one pass: each of their samples is a pass of its own

  /// `pass`, one of `together`, is the last of all.
  bool is_last(const std::vector<Unit>& pass) const { return apart.empty() && &pass == &together.back(); }
};

/// `units` [U] of so many `tokens` [U], in passes of at most `limit` tokens.
template <class Unit>
UnitPasses<Unit> passes_of_units(const std::vector<Unit>& units, std::span<const int64_t> tokens, int64_t limit) {
  UnitPasses<Unit> passes;
  std::vector<size_t> fitting;
  std::vector<int64_t> tokens_of_fitting;
  for (size_t i = 0; i < units.size(); ++i) {
    if (tokens[i] > limit) {
      passes.apart.push_back(units[i]);
      continue;
    }
    fitting.push_back(i);
    tokens_of_fitting.push_back(tokens[i]);
  }
  for (const std::vector<size_t>& pass : cut_into_passes(tokens_of_fitting, limit)) {
    std::vector<Unit>& together = passes.together.emplace_back();
    for (const size_t place : pass) together.push_back(units[fitting[place]]);
  }
  return passes;
}

}  // namespace sluice::nodes
