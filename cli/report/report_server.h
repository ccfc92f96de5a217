#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/report/live_report.h"

namespace sluice::cli {

/// Serves the page of a report, and its data as JSON for the page to ask again for, at 127.0.0.1 alone. Nothing else is served,
/// whatever is asked for: only GET and HEAD are answered, and only to who names this address as the host, so that the page of a
/// stranger whose name leads here (DNS rebinding) reads nothing; no other origin is let in. A connection on which nothing is
/// asked for a second is closed, and keeps nobody else waiting for longer. Owns threads from construction to destruction, which
/// waits a second at most for an answer that is under way.
class ReportServer {
 public:
  /// Port 0: one that is free. `report` outlives this. Throws UserError where it cannot listen.
  ReportServer(LiveReport& report, uint16_t port);
  ~ReportServer();
  ReportServer(const ReportServer&) = delete;
  ReportServer& operator=(const ReportServer&) = delete;

  /// http://127.0.0.1:PORT/
  std::string address() const;

  /// False when it has ended by itself, as where the system takes its socket away.
  bool is_listening() const;

 private:
  class Http;  // cpp-httplib stays in one file
  std::unique_ptr<Http> http_;
};

}  // namespace sluice::cli
