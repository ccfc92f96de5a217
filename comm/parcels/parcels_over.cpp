#include "comm/parcels/parcels_over.h"

#include <chrono>
#include <utility>

#include "comm/parcels/peer_sockets.h"
#include "comm/store_connection.h"

namespace sluice::comm {

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
  return std::make_unique<DirectParcels>(store.world(), meet_peers(connection->torch_store(), "parcels", store.world(), sockets),
                                         std::move(failed), DamageOptions{.sends_again = options.sends_again},
                                         options.expendable);
}

}  // namespace sluice::comm
