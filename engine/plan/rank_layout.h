#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/rank_range.h"
#include "base/problem.h"
#include "engine/contract/settings.h"
#include "engine/plan/plan_memory.h"

namespace sluice::engine {

/// Ranks of a run that do a part of its work, [cluster.roles.NAME]: those after the ranks of the role before.
struct PlanRole {
  std::string name;
  SourceSpan where;
  int first_rank = 0;            // of those that schedule
  int ranks = 1;                 // with those that assist
  int64_t tokens_in_flight = 0;  // of each
  bool elastic = false;          // the run goes on when one of them is lost
  PlanMemory memory;             // of each, on the host
  std::vector<PlanDevice> devices;

  /// Whether an executor is on its ranks, which then bears its name: "train/cpu".
  bool has_executor(const std::string& executor) const { return executor.starts_with(name + "/"); }
};

/// Which rank of a run does what: all that follows from their number, their roles and [cluster], whatever the nodes are. Ranks
/// that schedule come first; after them those that assist, which have no nodes: with roles first those of the role that samples,
/// and those that compute passes of frozen models last. Who works with whom: engine/plan/rank_groups.h. Immutable once proven.
struct RankLayout {
  int ranks = 1;  // that the run is proven for
  ClusterSettings cluster;
  std::vector<PlanRole> roles;          // those that train, then those that sample; none: every rank does both,
  std::optional<PlanRole> whole;        // of this role, where there are others; nothing: there are none
  std::vector<PlanRole> forward_roles;  // whose ranks compute passes of frozen models for those that train; after all others

  /// Whether some ranks train and others sample. Only then there are these two, the first of all roles.
  bool has_roles() const { return !roles.empty(); }
  const PlanRole& training_role() const { return roles.front(); }
  const PlanRole& sampling_role() const { return roles.back(); }

  /// All roles, in the order of their first ranks. Empty: every rank does everything.
  std::vector<const PlanRole*> all_roles() const;

  /// Ranks of roles that compute passes of frozen models: the last ones.
  int forward_ranks() const;
  bool forwards(int rank) const { return rank >= ranks - forward_ranks(); }

  /// Ranks that hold what is trained, and how many of them compute a pass together: one of these leads and the others assist.
  int training_ranks() const { return has_roles() ? training_role().ranks : ranks - forward_ranks(); }
  int pass_ranks() const { return ranks == 1 ? 1 : static_cast<int>(cluster.sequence_parallel); }
  int ring() const { return pass_ranks() == 1 ? 1 : static_cast<int>(cluster.ring); }  // blocks that these make

  /// Ranks that sample a token together: without roles the first ones of those that compute passes together, and with roles ranks
  /// of the one that samples, of which one leads and the others assist.
  int sampling_ranks() const { return !has_roles() && pass_ranks() == 1 ? 1 : static_cast<int>(cluster.tensor_parallel); }

  /// Ranks next to each other that have the experts of a layer between them.
  int expert_ranks() const { return pass_ranks() == 1 ? 1 : static_cast<int>(cluster.expert_parallel); }

  /// Ranks that have micro-batches, and those that sample: all that schedule, or with roles the first ones and the others.
  int owners() const { return std::max(1, training_ranks() / pass_ranks()); }
  int samplers() const { return has_roles() ? std::max(1, sampling_role().ranks / sampling_ranks()) : owners(); }
  int scheduling_ranks() const { return has_roles() ? owners() + samplers() : owners(); }
  bool trains(int rank) const { return rank < owners(); }
  bool samples(int rank) const { return scheduling_ranks() - samplers() <= rank && rank < scheduling_ranks(); }
  bool assists(int rank) const { return scheduling_ranks() <= rank; }
  bool assists_sampling(int rank) const { return has_roles() && assists(rank) && rank < owners() + sampling_role().ranks; }
  bool holds_trained(int rank) const { return trains(rank) || (assists(rank) && !assists_sampling(rank) && !forwards(rank)); }

  /// With roles: the ranks that get each version of the weights.
  std::vector<int> receivers() const;

  /// Null: the rank does everything, and there are no roles.
  const PlanRole* role_of(int rank) const;

  /// Ranks that may be lost, and the run goes on without them.
  RankRange expendable() const;

  /// Of [cluster]: the parts that every iteration is dealt out to, and how many of them each rank has that trains.
  int64_t slots() const { return cluster.slots.value_or(owners()); }
  int64_t slots_of_rank() const { return slots() / owners(); }
  bool shards_parameters() const { return cluster.shard == Shard::kParameters; }

  /// With these in common: so many ranks that train have each weight once, and there are so many groups of such ranks.
  int shard_ranks() const { return training_ranks() == 1 ? 1 : static_cast<int>(cluster.shard_ranks.value_or(training_ranks())); }
  int shard_groups() const { return training_ranks() / shard_ranks(); }
  bool shards_optimizer() const { return training_ranks() > 1 && cluster.shard != Shard::kNone; }

  /// Whether an executor is of a role that computes passes of frozen models.
  bool is_forward(const std::string& executor) const;

  /// Whether a rank has an executor: with roles that of a node that it has. On one of a role that computes passes of frozen
  /// models, those that train wait for these.
  bool has_executor(int rank, const std::string& name) const;
};

}  // namespace sluice::engine
