#pragma once

#include "base/error.h"

namespace sluice::comm {

/// What two ranks exchange over has broken. That is all that a connection knows: whether the other rank was killed, was cut off
/// or has failed by itself, the heartbeat knows better. What comes damaged over one that holds is none.
class LinkLost : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace sluice::comm
