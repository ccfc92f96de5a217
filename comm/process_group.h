#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/contract/world/world.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace sluice::comm {

struct ProcessGroupOptions {
  std::string host = "127.0.0.1";                // this machine's address or name, which the other ranks can reach
  std::chrono::milliseconds to_connect{60'000};  // how long the others may take to come
};

/// All ranks of a run, connected with each other by Gloo over TCP: when this returns, each has a connection to each other.
///
/// `store`: where ranks find each other; an intrusive_ptr owns it, of which the group takes one. `prefix`: of the group's keys,
/// the same on all ranks and new in this store. Whoever has the last pointer to the group closes its connections, and never waits
/// for other ranks in that.
///
/// What is sent and received ends by itself when `to_connect` is over: wait() takes another time.
///
/// Threads: operations of one group are started by one thread at a time, in the same order on all ranks. Several groups at once
/// may send and receive, and nothing else: LibTorch 2.11 takes notes of all other operations in one place, without a lock.
/// Failure: throws UserError where there is no such host, or not all ranks come in time.
std::shared_ptr<c10d::Backend> connect_ranks(c10d::Store& store, const std::string& prefix, engine::World world,
                                             const ProcessGroupOptions& options = {});

}  // namespace sluice::comm
