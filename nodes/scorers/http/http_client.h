#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/outside_work.h"

namespace sluice::nodes {

struct HttpClientOptions {
  std::vector<std::string> urls;                 // that requests go to in turn
  std::string bearer_token;                      // empty: none is sent
  std::chrono::milliseconds timeout{60'000};     // for one attempt
  size_t retries = 5;                            // attempts after the first one
  std::chrono::milliseconds first_pause{1'000};  // before the first of them; doubles from one to the next, up to 30 s
  size_t parallel = 8;                           // requests under way at once
};

/// The body of an answer, or why there is none: "http://host:5000/score answered 500: no such model (after 6 attempts)".
struct HttpReply {
  std::string url;  // that answered, without a password
  std::string body;
  std::string failure;  // empty: there is a body
};

/// Posts JSON over HTTP and HTTPS.
///
/// What may pass is tried again, at the next of the urls: no connection, no answer in time, and the states 408, 429 and 5xx.
/// Proxies are those of the environment, and none for this machine itself. Redirections are not followed. Belongs to one thread.
class HttpClient {
 public:
  /// Throws UserError for a url that is none.
  explicit HttpClient(HttpClientOptions options);
  ~HttpClient();

  /// The replies to the bodies, in their order whatever the timing. Throws what `wait` does; then nothing is under way any more.
  std::vector<HttpReply> post(std::span<const std::string> bodies, const engine::OutsideWait& wait = {});

 private:
  class Transfers;

  std::unique_ptr<Transfers> transfers_;
};

/// Why `url` is not one of HTTP or HTTPS; empty: it is.
std::string fault_of_url(const std::string& url);

}  // namespace sluice::nodes
