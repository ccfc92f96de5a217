#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/parcels/peer_sockets.h"
#include "comm/store.h"
#include "engine/contract/world/common_memory.h"

namespace sluice::comm {

/// Common memory of ranks of one host: the first of them makes a memfd for each name, and the others map it. The system gives the
/// memory back with the last of them, however that ends.
///
/// Waits end on `give_up` too. Failure: as engine/contract/world/common_memory.h has it.
class CommonMemoryOver final : public engine::CommonMemory {
 public:
  /// `peers`: by place, as meet_peers() returns them. Throws UserError where one of them is on another host.
  CommonMemoryOver(engine::SharingRanks ranks, std::vector<PeerSocket> peers, std::stop_token give_up);

  const engine::SharingRanks& ranks() const override { return ranks_; }
  std::shared_ptr<std::byte> get(const std::string& name, size_t bytes) override;
  void meet() override;
  bool is_over() const override { return give_up_.stop_requested(); }

 private:
  std::shared_ptr<std::byte> make(const std::string& name, size_t bytes);
  std::shared_ptr<std::byte> take(const std::string& name, size_t bytes);

  void check_host(int place) const;
  int number(int place) const { return ranks_.members[static_cast<size_t>(place)]; }

  const engine::SharingRanks ranks_;
  const std::vector<PeerSocket> peers_;
  const std::stop_token give_up_;
};

/// Of these ranks of those that `store` knows. `name`: what they have it for; a rank is in one group of a name. Waits for: all of
/// them to ask. Ends when: they are connected, after `join_seconds`, or on `give_up`. Throws UserError where they cannot be
/// connected, or are on several hosts.
std::unique_ptr<engine::CommonMemory> common_memory_over(const Store& store, const std::string& name,
                                                         const engine::SharingRanks& ranks, double join_seconds,
                                                         const std::stop_token& give_up = {});

}  // namespace sluice::comm
