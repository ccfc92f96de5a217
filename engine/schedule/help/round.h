#pragma once

#include <compare>
#include <cstdint>

namespace sluice::engine {

/// A round of a path: groups of an iteration that are drawn together. Another one is begun where a filter has dropped some that
/// are replaced. A plain value.
struct Round {
  int64_t iteration = 0;
  int64_t number = 0;  // in the iteration, from 0

  auto operator<=>(const Round&) const = default;
};

/// How far a rank is that has slots, as it tells those that only sample. A plain value.
struct OwnerNews {
  Round round;              // all iterations before have all of their groups
  bool has_groups = false;  // some of that round may be left to be made
  bool has_again = false;   // the next that is needed is one of these, and was given to a rank that is lost
  bool is_over = false;     // no others will come
  bool ends_early = false;  // likewise, since the run was interrupted
};

}  // namespace sluice::engine
