#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/incarnation.h"
#include "comm/store_connection.h"
#include "comm/store_server.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

/// Who joins which run.
struct JoinOptions {
  int rank = 0;
  int size = 1;
  std::string host = "127.0.0.1";  // of rank 0
  int port = 29500;                // likewise
  bool served = false;             // somebody else serves the store there already: rank 0 too only connects
  double join_seconds = 60;        // for all ranks to come
  double answer_seconds = 10;      // for the store to answer, once it is there
  std::string key = {};            // the same for all ranks of a run, so that a rank of another run is noticed
  bool several_machines = false;   // there are ranks on others, even where `host` is a loopback on that of rank 0
  bool may_come_back = false;      // where a process was this rank that is lost, this one takes its place in the run that goes on
};

/// All ranks of a run, and the store that rank 0 serves for them: the one way on which they find each other.
///
/// Joins in the constructor. Waits for: all ranks; or, in the place of a process that is lost, until that is found. Ends when:
/// they are there, or join_seconds are over. Lives longer than its connections. Thread-safe once it is there.
///
/// Failure: UserError, one sentence, where the port is in use, nobody serves the store, ranks are missing, a rank has another key
/// or another number of ranks, or others could reach the store and there is no key. Ranks that were there fail with the same
/// words. So that these are the only words, LibTorch's own warnings are off from now on in this process, unless
/// TORCH_CPP_LOG_LEVEL is set.
class Store {
 public:
  explicit Store(const JoinOptions& options);

  const engine::World& world() const { return world_; }

  /// Of each rank, as they came first; but of this one.
  const std::vector<Member>& members() const { return members_; }

  /// Above 0: this process takes the place of one that is lost. The others are told by come_back().
  int64_t incarnation() const { return return_ ? return_->mine().number : 0; }
  void come_back() const;

  /// In digits or as a name: where the other ranks reach this process.
  std::string own_address() const;

  double answer_seconds() const { return options_.answer_seconds; }

  /// One more connection.
  std::unique_ptr<StoreConnection> connect() const;

 private:
  void join(StoreConnection& connection, Clock::time_point until);

  const JoinOptions options_;
  const engine::World world_;
  std::unique_ptr<StoreServer> server_;  // null: another process serves
  StorePlace place_;
  std::vector<Member> members_;
  std::optional<Return> return_;
};

}  // namespace sluice::comm
