#include "comm/weights/publications_over.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/parcels/direct_parcels.h"
#include "comm/store_connection.h"
#include "comm/weights/direct_publication.h"

namespace sluice::comm {
namespace {

class DirectPublications final : public engine::Publications {
 public:
  DirectPublications(DirectParcels& parcels, std::vector<int> hosts) : parcels_(parcels), hosts_(std::move(hosts)) {}

  std::unique_ptr<engine::Publication> publication(engine::PublicationLayout layout,
                                                   engine::Publication::Events events) override {
    layout.hosts = hosts_;
    return std::make_unique<DirectPublication>(parcels_, std::move(layout), std::move(events));
  }

 private:
  DirectParcels& parcels_;
  const std::vector<int> hosts_;
};

// The first rank that shares memory with this one stands for its host.
int own_host(const DirectParcels& parcels) {
  for (int rank = 0; rank < parcels.world().rank; ++rank)
    if (parcels.shares_memory(rank)) return rank;
  return parcels.world().rank;
}

std::string host_key(int rank) { return "weights/host/" + std::to_string(rank); }

}  // namespace

std::unique_ptr<engine::Publications> publications_over(const Store& store, engine::Parcels& parcels, double join_seconds) {
  auto* const direct = dynamic_cast<DirectParcels*>(&parcels);
  SLUICE_CHECK(direct != nullptr, "weights over parcels of another kind");
  const std::shared_ptr<StoreConnection> connection = store.connect();
  const auto until = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(join_seconds * 1000));
  const engine::World& world = store.world();
  connection->set(host_key(world.rank), std::to_string(own_host(*direct)));
  std::vector<int> hosts;
  for (int rank = 0; rank < world.size; ++rank) {
    const std::optional<std::string> host = connection->wait_for(host_key(rank), until);
    if (!host) throw UserError("rank " + std::to_string(rank) + " has not said which host it is on");
    hosts.push_back(std::stoi(*host));
  }
  return std::make_unique<DirectPublications>(*direct, std::move(hosts));
}

}  // namespace sluice::comm
