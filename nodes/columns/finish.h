#pragma once

#include <cstdint>

namespace sluice::nodes {

/// The entries of the column `finish`: why a sample ended.
enum class Finish : uint8_t {
  kEndOfSequence = 0,
  kLength = 1,      // max_new_tokens were spent
  kStopString = 2,  // one of `stop`; or, where the environment was done, the string that ended the last turn
  kTurnLimit = 3,   // max_turns were taken, and the environment was not done
};

}  // namespace sluice::nodes
