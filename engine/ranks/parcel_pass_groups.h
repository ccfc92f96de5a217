#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/contract/world/pass_group.h"
#include "engine/ranks/parcels.h"

namespace sluice::engine {

/// Pass groups whose messages go as parcels: through shared memory on a host, else over TCP.
///
/// Ownership: uses the parcels, which outlive this and must be closed before it goes. Threads: as PassGroup and PassGroups say;
/// parcels come on the thread that carries them. Failure: what goes wrong with parcels is told to whom their maker has named, who
/// calls abandon().
class ParcelPassGroups final : public PassGroups {
 public:
  /// `ranks`: of each place of the group that this rank belongs to, its rank. `ring`, `expert_ranks`: as PassGroup
  /// has them.
  ParcelPassGroups(Parcels& parcels, std::vector<int> ranks, int ring = 1, int expert_ranks = 1);
  ~ParcelPassGroups() override;

  PassGroup& of(const std::string& name, int first = 0) override;
  PassGroup& between(const std::string& name, int asks, int answers) override;
  std::mutex& backward_on(const std::string& device) override;
  std::mutex& answering() override { return answering_; }
  void abandon() override;

 private:
  class Group;

  Group& made(const std::string& key, const std::string& name, std::vector<int> ranks, int ring, int expert_ranks);

  Parcels& parcels_;
  const std::vector<int> ranks_;
  const int ring_, expert_ranks_;
  std::mutex mutex_;  // guards what follows
  bool is_over_ = false;
  std::map<std::string, std::unique_ptr<Group>> groups_;  // by name, and of two ranks with these after it
  std::map<std::string, std::mutex> backwards_;           // by device
  std::mutex answering_;
};

}  // namespace sluice::engine
