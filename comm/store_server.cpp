#include "comm/store_server.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/sockets.h"
#include "comm/without_name_servers.h"

namespace sluice::comm {

struct StoreServer::Daemon {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

// LibTorch itself would listen at all addresses, and would not say whether a port is in use.
StoreServer::StoreServer(const std::string& host, int port, bool everywhere) : daemon_(std::make_unique<Daemon>()) {
  Listener listener = listen_on(host, port, everywhere);
  address_ = listener.address;
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = listener.socket.release();
  const WithoutNameServers digits_only;
  daemon_->store = c10::make_intrusive<c10d::TCPStore>(address_, options);
}

StoreServer::~StoreServer() = default;

}  // namespace sluice::comm
