#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/check/check_draft.h"
#include "engine/plan/capacity.h"
#include "engine/plan/saturating.h"

// What the checks of tokens have in common: what a path has at worst, and who says what is wrong with that.
namespace sluice::engine::checking {

/// The most and the longest samples that a path can have. A plain value; what it points to outlives it.
struct Worst {
  DraftPath* path;
  const DraftNode* maker;  // the node that makes the samples
  int64_t groups;          // of the rank that has most
  int64_t samples;         // of a group
  int64_t tokens;          // of a sample
  int64_t least;           // tokens of a sample once it is finished
  int64_t side;            // samples beside those of a group

  int64_t group_tokens() const { return saturating_product(saturating_sum(samples, side), tokens); }
  std::string group_text() const {
    const std::string own = std::to_string(samples);
    return (side == 0 ? own : "(" + own + " + " + std::to_string(side) + ")") + " x " + std::to_string(tokens);
  }
};

inline constexpr const char* kTokensInFlight = "tokens_in_flight";

/// Of the ranks that train; null: there are no roles.
inline const PlanRole* training_role(const Draft& draft) { return draft.plan.role_of(0); }

/// It takes credit as its samples grow, and not all at once.
inline bool grows_on_demand(const Worst& worst) { return worst.path->rollout && worst.maker->needs->on_demand_tokens > 0; }

/// Says why the tokens in flight of a path are too few, and what would do. `shape` is what was proven.
void report_stall(Draft& draft, const Worst& worst, const CapacityShape& shape);

/// Whether ranks that only sample have room for the groups that they make. `paths`: all.
void check_making(Draft& draft, const std::vector<Worst>& paths);

}  // namespace sluice::engine::checking
