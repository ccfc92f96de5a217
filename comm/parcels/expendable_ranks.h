#pragma once

#include <cstdint>
#include <functional>

#include "base/numbers/rank_range.h"
#include "comm/parcels/peer_sockets.h"

namespace sluice::comm {

/// These ranks may be lost, and the others go on. `lost` is called once for each of them that closes its connection, on the
/// thread of the parcels: it must neither throw nor destroy them. `connect` connects with a process that takes the place of such
/// a rank; no socket: it does not answer.
struct ExpendableRanks {
  RankRange ranks = {};
  std::function<void(int rank, int64_t incarnation)> lost;
  std::function<PeerSocket(int rank, int64_t incarnation)> connect = {};
};

}  // namespace sluice::comm
