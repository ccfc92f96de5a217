#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/world_environment.h"
#include "cli/run/run_fate.h"
#include "engine/contract/world/common_memory.h"
#include "engine/contract/world/world.h"
#include "engine/plan/plan.h"
#include "engine/ranks/parcel_pass_groups.h"
#include "engine/ranks/rank_clock.h"
#include "engine/ranks/rank_links.h"
#include "engine/ranks/rank_sign.h"

namespace sluice::comm {
class Cluster;
class ParcelsWithoutLost;
class PublicationsOver;
class Store;
struct ClusterOptions;
struct ParcelOptions;
}  // namespace sluice::comm

namespace sluice::cli {

/// This process among the ranks of a run, or alone. What only one of them may decide, such as the run folder, rank 0 does, and
/// tells the others.
///
/// Owns the connections to the other ranks. One in a process; used by its main thread, but for what is said otherwise. Failure:
/// of another rank, or of the connections, see RunFate; a rank that goes away without end() takes the others with it. A failure
/// before watch(), while ranks connect and load, ends the process some seconds later if nothing else does.
class Ranks {
 public:
  /// By the environment. Throws UserError where that is half set.
  Ranks();
  ~Ranks();

  int size() const { return environment_ ? environment_->size : 1; }
  int rank() const { return environment_ ? environment_->rank : 0; }
  bool leads() const { return !environment_ || environment_->rank == 0; }

  /// Waits for: the other ranks, which must have the same plan, program and kind of machine. Ends when: they do, or after
  /// [cluster] join_seconds. Alone: nothing. Throws UserError.
  void join(const engine::Plan& plan);

  /// Of rank 0: tells all others a text, once. Of any other: waits for it. Ends when: it came, or a rank has failed, whose
  /// failure this throws.
  void tell(const std::string& text);
  std::string hear();

  /// Null: this process is alone.
  engine::Reductions* reductions();

  /// Through which ranks work for each other. Nothing: this process is alone, or its plan shares no making. After join().
  std::optional<engine::RankLinks> links();

  /// Of the ranks that train, or of those that sample on this host. Null: this process is alone, or has nothing in common with
  /// others. After join().
  engine::CommonMemory* common_memory() { return common_memory_.get(); }

  /// In which this rank computes passes with others. Null: it computes its own. After join().
  engine::PassGroups* passes() { return passes_.get(); }

  /// This process takes the place of a rank that was lost, in a run that goes on. After join().
  bool came_back() const;

  /// Of such a rank, which has loaded its models: from which version of the weights on it takes part. Waits for: the end of an
  /// iteration. Ends when: rank 0 has answered. Throws CameTooLate where the run ends before.
  int64_t come_in();

  /// A run begins or, with nothing, is over.
  void watch(RunFate::OfRun run) { fate_.watch(std::move(run)); }

  /// See RunFate. From any thread.
  bool others_failed() const { return fate_.others_failed(); }
  bool was_given_up() const { return fate_.was_given_up(); }

  /// How far the clock of this rank is behind that of rank 0: nothing before it is known. After join(), from any thread.
  std::optional<engine::ClockOffset> clock_offset() const;

  /// All ranks, with their last signs; none where this process is alone. After join(), from any thread.
  std::vector<engine::RankSeen> seen() const;

  /// The last thing; nothing the second time. Waits for the other ranks where this serves them, some seconds at most if not all
  /// is well.
  void end(bool well, const std::string& why);

 private:
  comm::ClusterOptions cluster_options(const engine::Plan& plan);
  comm::ParcelOptions parcel_options(const engine::Plan& plan);
  std::unique_ptr<comm::ParcelsWithoutLost> make_parcels(const comm::ParcelOptions& parcels, const comm::Store& store);
  void connect_trainers(const engine::Plan& plan);
  void connect_passes(const engine::Plan& plan, comm::ParcelsWithoutLost& parcels);
  void connect_samplers(const engine::Plan& plan, comm::ParcelsWithoutLost& parcels);
  void have_in_common(const std::string& name, const engine::SharingRanks& ranks, double join_seconds);
  void take_back(int rank, int64_t incarnation);
  template <class Connect>
  auto connected(const Connect& connect);

  const std::optional<WorldEnvironment> environment_;     // nothing: alone
  RunFate fate_;                                          // outlives what tells it
  std::unique_ptr<comm::Cluster> cluster_;                // null: alone, or not joined yet
  std::unique_ptr<comm::PublicationsOver> publications_;  // null: likewise, or the plan has no roles
  std::unique_ptr<engine::CommonMemory> common_memory_;   // null: likewise, or there is none
  std::unique_ptr<engine::ParcelPassGroups> passes_;      // null: likewise, or nobody shares passes
  bool shares_making_ = false;                            // ranks make groups for each other
  std::optional<std::string> heard_;                      // see RunFate::note()
  std::mutex telling_;                                    // guards what follows
  std::optional<std::string> told_;                       // by this rank
};

}  // namespace sluice::cli
