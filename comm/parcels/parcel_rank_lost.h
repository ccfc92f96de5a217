#pragma once

#include "comm/link_lost.h"

namespace sluice::comm {

/// A rank is gone that parcels were to go to or come from.
class ParcelRankLost : public LinkLost {
 public:
  using LinkLost::LinkLost;
};

/// It has closed its connection, which all others notice that have one to it.
class ParcelRankClosed final : public ParcelRankLost {
 public:
  using ParcelRankLost::ParcelRankLost;
};

}  // namespace sluice::comm
