#pragma once

#include "base/error.h"

namespace sluice::comm {

/// A rank is gone that parcels were to go to or come from. That is all that a connection knows: whether the rank was killed, was
/// cut off or has failed by itself, the heartbeat knows better.
class ParcelRankLost : public UserError {
 public:
  using UserError::UserError;
};

/// It has closed its connection, which all others notice that have one to it.
class ParcelRankClosed final : public ParcelRankLost {
 public:
  using ParcelRankLost::ParcelRankLost;
};

}  // namespace sluice::comm
