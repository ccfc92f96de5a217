#pragma once

#include <memory>
#include <string>

namespace sluice::comm {

/// Serves the store of a run, c10d's TCPStore, on a thread of its own while this lives. Rank 0 has one.
///
/// Failure: UserError where the port is in use, or the host is not this machine.
class StoreServer {
 public:
  /// At the address of `host`, or at all addresses of this machine.
  StoreServer(const std::string& host, int port, bool everywhere);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// In digits: where this process reaches it.
  const std::string& address() const { return address_; }

 private:
  struct Daemon;

  std::string address_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace sluice::comm
