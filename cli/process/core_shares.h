#pragma once

#include <future>
#include <vector>

#include "base/process/machine.h"

namespace sluice::cli {

/// The cores that one of `count` processes beside each other gets: as many as the others have, or one more, next to each other.
/// Where there are fewer cores than processes each gets one, in turns: neighbours do the same work at the same time, as the ranks
/// of a role do, so they are the last that should share.
std::vector<int> share_of_cores(const std::vector<int>& cores, int index, int count);

/// What `action` returns where it has only these cores: a pipeline is checked for those that it will have.
template <class Action>
auto on_cores(const std::vector<int>& cores, const Action& action) {
  return std::async(std::launch::async,
                    [&] {
                      keep_to_cores(cores);
                      return action();
                    })
      .get();
}

}  // namespace sluice::cli
