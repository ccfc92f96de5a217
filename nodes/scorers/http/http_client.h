#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/world/outside_work.h"

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
  std::string url;  // that answered, without what is secret in it
  std::string body;
  std::string failure;  // empty: there is a body
};

/// A request that is tried again.
struct HttpRetry {
  std::string failure;              // of the attempt, as in a reply
  size_t attempt;                   // that failed, from 1
  size_t left;                      // attempts that may follow
  std::chrono::milliseconds pause;  // until the next
};

/// Posts JSON over HTTP and HTTPS.
///
/// What may pass is tried again, at the next of the urls: no connection, no answer in time, and the states 408, 429 and 5xx.
/// Proxies are those of the environment, and none for this machine itself; certificates are those of trusted_certificates.h.
/// Redirections are not followed, and answers may be compressed. Belongs to one thread.
class HttpClient {
 public:
  /// Throws UserError for a url that is none.
  explicit HttpClient(HttpClientOptions options);
  ~HttpClient();

  /// Takes the reply to one of the bodies; false: nobody needs those to the others any more.
  using Take = std::function<bool(size_t body, const HttpReply& reply)>;
  using Retried = std::function<void(const HttpRetry& retry)>;

  /// Gives the replies to the bodies as they come, in any order, and tells of what is tried again. Throws what `take` and `wait`
  /// do. Afterwards nothing is under way any more, whatever the end.
  void post(std::span<const std::string> bodies, const Take& take, const Retried& retried, const engine::OutsideWait& wait = {});

 private:
  class Transfers;

  std::unique_ptr<Transfers> transfers_;
};

}  // namespace sluice::nodes
