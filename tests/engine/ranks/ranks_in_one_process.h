#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/world/world.h"
#include "engine/plan/plan.h"
#include "engine/ranks/rank_links.h"

namespace sluice::engine::testing {

/// What repeats exactly of the lines of a run, as bits: a NaN or the sign of a zero would otherwise be missed.
using Rows = std::vector<std::vector<std::pair<std::string, uint64_t>>>;

struct RankOutcome {
  Rows rows;
  std::vector<MetricRow> lines;  // all of them
  double for_others = 0;         // groups that were made for other ranks, by the rank that made most, of all iterations
  bool came_in = false;          // it was lost, and took part again
  bool was_cut_short = false;    // since all ranks that sample were lost
  bool lacked_samplers = false;  // likewise, while something was measured: that fails
};

/// Runs a plan to its end, as one rank or alone. A run that does not end well is a failure of the test.
RankOutcome run_rank(const Plan& plan, Reductions* reductions = nullptr, std::optional<RankLinks> links = {});

/// A rank that is lost, so long after the beginning, and comes back so long after that, or never; the others hear of both one
/// after the other.
struct LostRank {
  int rank = 0;
  int64_t after_us = 0;
  std::optional<int64_t> back_after_us = {};
};

/// Runs all ranks of a plan, each on a thread, connected by mail, parcels and versions of weights that come in any order, up to
/// `pause_us` late. Of ranks that are lost on the way the outcome is empty, but for that it came in again. A run that does not
/// end well is a failure of the test, unless all that sample were to be lost.
std::vector<RankOutcome> run_ranks(const Plan& plan, uint64_t seed, int64_t pause_us, const std::vector<LostRank>& lost = {});

}  // namespace sluice::engine::testing
