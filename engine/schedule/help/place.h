#pragma once

#include <compare>
#include <cstdint>

namespace sluice::engine {

/// Which groups of a path: of one round of an iteration.
struct Place {
  int64_t iteration = 0;
  int64_t round = 0;

  auto operator<=>(const Place&) const = default;
};

/// How far a rank is that has slots, as it tells those that only sample. A plain value.
struct OwnerNews {
  Place place;              // all iterations before have all of their groups
  bool has_groups = false;  // some of that place may be left to be made
  bool has_again = false;   // the next that is needed is one of these, and was given to a rank that is lost
  bool is_over = false;     // no others will come
  bool ends_early = false;  // likewise, since the run was interrupted
};

}  // namespace sluice::engine
