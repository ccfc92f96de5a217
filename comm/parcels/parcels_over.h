#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <stop_token>

#include "comm/parcels/direct_parcels.h"
#include "comm/store.h"

namespace sluice::comm {

struct ParcelOptions {
  int owners = 0;  // the ranks with which one exchanges parcels that has taken the place of another
  double join_seconds = 60;
  bool shares_memory = true;  // with ranks of this host; else all goes over TCP
  bool sends_again = false;   // a chunk that came damaged, once; else that fails at once
  ExpendableRanks expendable = {};
};

/// Parcels between the ranks of a run, once for each run. Where this process takes the place of one that is lost, it tells the
/// others so, which then connect with it.
///
/// Waits for: all ranks to ask for them. Ends when: they are connected, after `join_seconds`, or on `give_up`. `failed` as
/// DirectParcels has it. Throws UserError where the ranks cannot be connected, or this has given up.
std::unique_ptr<DirectParcels> parcels_over(const Store& store, const ParcelOptions& options,
                                            std::function<void(std::exception_ptr)> failed, const std::stop_token& give_up = {});

}  // namespace sluice::comm
