#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/observe/work_observer.h"

namespace sluice::engine {

/// Puts together where ranks came to the same point and where they went on, for the arrows of a trace: from the rank that came
/// last to each that had waited for it. Not thread-safe; nothing here fails.
///
/// Memory is bounded: points that some rank never tells of, such as those of an iteration in which it was lost, are forgotten,
/// the oldest first.
class Meetings {
 public:
  /// Where a rank was, on the clock that all times are on.
  struct Place {
    int rank = 0;
    int executor = 0;
    int64_t ns = 0;
  };
  struct Arrow {
    Place from, to;
  };

  explicit Meetings(int ranks) : ranks_(static_cast<size_t>(ranks)) {}

  /// What one rank tells, once a point. Returns the arrows of that point when all ranks have told. A rank whose clock says that
  /// it went on before the last one had come has not waited, or its clock is too far off to say: it gets none.
  std::vector<Arrow> add(int rank, const Meeting& meeting);

 private:
  struct Key {
    int64_t iteration = 0;
    int node = 0;
    int64_t number = 0;

    auto operator<=>(const Key&) const = default;
  };
  struct Told {
    int rank = 0;
    Meeting meeting;
  };

  const size_t ranks_;
  std::map<Key, std::vector<Told>> open_;  // that some ranks have told of
};

}  // namespace sluice::engine
