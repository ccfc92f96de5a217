#include "comm/parcels/parcels_over.h"

#include <chrono>
#include <utility>

#include "comm/parcels/peer_sockets.h"
#include "comm/store_connection.h"

namespace sluice::comm {
namespace {

constexpr const char* kPrefix = "parcels";
constexpr std::chrono::milliseconds kToConnect{
    2'000};  // with a process that waits for it: others must not miss this one meanwhile

}  // namespace

std::unique_ptr<DirectParcels> parcels_over(const Store& store, const ParcelOptions& options,
                                            std::function<void(std::exception_ptr)> failed, const std::stop_token& give_up) {
  const std::shared_ptr<StoreConnection> connection = store.connect();
  const std::stop_callback interrupt(give_up, [connection] { connection->interrupt(); });
  const PeerSocketOptions sockets{
      .host = store.own_address(),
      .shares_memory = options.shares_memory,
      .to_connect = std::chrono::milliseconds(static_cast<int64_t>(options.join_seconds * 1000)),
      .give_up = give_up,
  };
  ExpendableRanks expendable = options.expendable;
  expendable.connect = [&store, sockets](int rank, int64_t incarnation) {
    PeerSocketOptions quick = sockets;
    quick.to_connect = kToConnect;
    return connect_with(store.connect()->torch_store(), kPrefix, store.world(), rank, incarnation, quick);
  };
  c10d::Store& keys = connection->torch_store();
  auto peers = store.incarnation() == 0 ? meet_peers(keys, kPrefix, store.world(), sockets)
                                        : come_back(
                                              keys, kPrefix, store.world(), store.incarnation(), options.owners,
                                              [&store] { store.come_back(); }, sockets);
  return std::make_unique<DirectParcels>(store.world(), std::move(peers), std::move(failed),
                                         DamageOptions{.sends_again = options.sends_again}, std::move(expendable));
}

}  // namespace sluice::comm
