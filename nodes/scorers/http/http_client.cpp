#include "nodes/scorers/http/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"
#include "base/process/no_pipe_signal.h"
#include "base/text/url_passwords.h"
#include "engine/contract/version.h"
#include "nodes/scorers/http/http_failure.h"
#include "nodes/scorers/http/http_url.h"
#include "nodes/scorers/http/trusted_certificates.h"

namespace sluice::nodes {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{30'000};
constexpr curl_off_t kLongestWanted = 300;  // seconds, of Retry-After

// The library's own initialisation; it must come before its first use, and counts.
class Library {
 public:
  Library() { curl_global_init(CURL_GLOBAL_DEFAULT); }
};

}  // namespace

class HttpClient::Transfers {
 public:
  explicit Transfers(HttpClientOptions options) : options_(std::move(options)), multi_(curl_multi_init()) {
    SLUICE_CHECK(multi_ != nullptr, "no memory for transfers");
    SLUICE_CHECK(!options_.urls.empty() && options_.parallel > 0, "a client needs urls and requests");
    headers_ = curl_slist_append(headers_, "Content-Type: application/json");
    headers_ = curl_slist_append(headers_, "Expect:");  // no round trip before a large body
    if (!options_.bearer_token.empty()) {
      headers_ = curl_slist_append(headers_, ("Authorization: Bearer " + options_.bearer_token).c_str());
    }
  }

  ~Transfers() {
    give_up();
    curl_slist_free_all(headers_);
    curl_multi_cleanup(multi_);
  }

  void post(std::span<const std::string> bodies, const Take& take, const Retried& retried, const engine::OutsideWait& outside) {
    try {
      exchange(bodies, take, retried, outside);
    } catch (...) {
      give_up();
      throw;
    }
    give_up();
  }

 private:
  // Ends when: all replies were taken, nobody needs the others, or `outside` throws.
  void exchange(std::span<const std::string> bodies, const Take& take, const Retried& retried,
                const engine::OutsideWait& outside) {
    const NoPipeSignal no_signal;
    for (size_t i = 0; i < bodies.size(); ++i) waiting_.push_back({i, next_url_++ % options_.urls.size(), 0, Clock::now()});
    while (!waiting_.empty() || !running_.empty()) {
      outside.go_on();
      start_what_is_due(bodies);
      int still_running = 0;
      curl_multi_perform(multi_, &still_running);
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        const bool is_end = message->msg == CURLMSG_DONE;
        if (is_end && !finish(message->easy_handle, message->data.result, take, retried)) return;
      }
      wait();
    }
  }

  void give_up() {
    for (const auto& transfer : running_) close(*transfer);
    running_.clear();
    waiting_.clear();
  }

  struct Attempt {
    size_t request;
    size_t url;
    size_t number;  // from 0
    Clock::time_point due;
  };
  struct Transfer {
    Attempt attempt;
    CURL* handle;
    std::string body;
    bool too_long = false;
    char error[CURL_ERROR_SIZE] = "";
  };

  static size_t receive(char* bytes, size_t, size_t count, void* to) {
    auto& transfer = *static_cast<Transfer*>(to);
    if (transfer.body.size() + count > kMostHttpBody) {
      transfer.too_long = true;
      return 0;
    }
    transfer.body.append(bytes, count);
    return count;
  }

  void start_what_is_due(std::span<const std::string> bodies) {
    const auto now = Clock::now();
    for (auto next = waiting_.begin(); next != waiting_.end() && running_.size() < options_.parallel;) {
      if (next->due > now) {
        ++next;
        continue;
      }
      start(*next, bodies[next->request]);
      next = waiting_.erase(next);
    }
  }

  // `body` outlives the transfer.
  void start(const Attempt& attempt, const std::string& body) {
    auto& transfer = *running_.emplace_back(std::make_unique<Transfer>(Transfer{attempt, curl_easy_init(), {}}));
    SLUICE_CHECK(transfer.handle != nullptr, "no memory for a transfer");
    const std::string& url = options_.urls[attempt.url];
    const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(transfer.handle, option, value); };
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_POSTFIELDS, body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_HTTPHEADER, headers_);
    set(CURLOPT_USERAGENT, user_agent().c_str());
    set(CURLOPT_ACCEPT_ENCODING, "");  // all that the library can unpack
    if (!trusted_.file.empty()) set(CURLOPT_CAINFO, trusted_.file.c_str());
    if (!trusted_.folder.empty()) set(CURLOPT_CAPATH, trusted_.folder.c_str());
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.timeout.count()));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(transfer.error));
    set(CURLOPT_WRITEFUNCTION, &Transfers::receive);
    set(CURLOPT_WRITEDATA, &transfer);
    if (is_this_machine(url)) set(CURLOPT_PROXY, "");
    curl_multi_add_handle(multi_, transfer.handle);
  }

  // False: nobody needs the other replies.
  bool finish(CURL* handle, CURLcode code, const Take& take, const Retried& retried) {
    const std::unique_ptr<Transfer> transfer = taken(handle);
    const HttpEnd end = end_of(*transfer, code);
    close(*transfer);
    const Attempt& attempt = transfer->attempt;
    const std::string& url = options_.urls[attempt.url];
    if (is_answer(end)) return take(attempt.request, {shown_url(url), end.body, {}});
    const std::string failure = failure_text(end, url, trusted_);
    if (may_pass(end) && attempt.number < options_.retries) {
      const milliseconds pause = pause_behind(attempt, end.wanted);
      waiting_.push_back({attempt.request, (attempt.url + 1) % options_.urls.size(), attempt.number + 1, Clock::now() + pause});
      retried({failure, attempt.number + 1, options_.retries - attempt.number, pause});
      return true;
    }
    const std::string attempts = attempt.number == 0 ? "" : " (after " + std::to_string(attempt.number + 1) + " attempts)";
    return take(attempt.request, {shown_url(url), {}, failure + attempts});
  }

  std::unique_ptr<Transfer> taken(CURL* handle) {
    const auto found = std::ranges::find(running_, handle, [](const auto& transfer) { return transfer->handle; });
    SLUICE_CHECK(found != running_.end(), "a transfer that nobody started");
    std::unique_ptr<Transfer> transfer = std::move(*found);
    running_.erase(found);
    return transfer;
  }

  HttpEnd end_of(Transfer& transfer, CURLcode code) const {
    HttpEnd end{.code = code, .error = transfer.error, .body = std::move(transfer.body), .too_long = transfer.too_long};
    const char* leads_to = nullptr;
    curl_off_t wanted = 0;
    curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &end.status);
    curl_easy_getinfo(transfer.handle, CURLINFO_RETRY_AFTER, &wanted);
    curl_easy_getinfo(transfer.handle, CURLINFO_REDIRECT_URL, &leads_to);
    end.leads_to = leads_to == nullptr ? "" : leads_to;
    end.wanted = wanted;
    end.has_token = !options_.bearer_token.empty();
    return end;
  }

  // A pause that a server asks for is kept where the next attempt goes there again.
  milliseconds pause_behind(const Attempt& attempt, curl_off_t wanted) const {
    const milliseconds pause = options_.first_pause * (int64_t{1} << std::min<size_t>(attempt.number, 20));
    const milliseconds asked_for(1000 * std::min(wanted, kLongestWanted));
    return std::max(std::min(kLongestPause, pause), options_.urls.size() == 1 ? asked_for : milliseconds(0));
  }

  // Waits for: news of a transfer, or the time of the next attempt.
  void wait() {
    if (waiting_.empty() && running_.empty()) return;
    auto until = Clock::now() + milliseconds(1000);
    if (running_.size() < options_.parallel) {
      for (const Attempt& attempt : waiting_) until = std::min(until, attempt.due);
    }
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    if (left.count() > 0) curl_multi_poll(multi_, nullptr, 0, static_cast<int>(left.count()), nullptr);
  }

  void close(const Transfer& transfer) {
    curl_multi_remove_handle(multi_, transfer.handle);
    curl_easy_cleanup(transfer.handle);
  }

  static std::string user_agent() { return std::string("sluice/") + kVersionText; }

  const HttpClientOptions options_;
  const TrustedCertificates trusted_ = TrustedCertificates::of_environment();
  CURLM* multi_;
  curl_slist* headers_ = nullptr;
  size_t next_url_ = 0;
  std::deque<Attempt> waiting_;
  std::vector<std::unique_ptr<Transfer>> running_;
};

HttpClient::HttpClient(HttpClientOptions options) {
  static const Library library;
  for (const std::string& url : options.urls) {
    const std::string fault = fault_of_url(url);
    if (!fault.empty()) throw UserError(fault);
  }
  transfers_ = std::make_unique<Transfers>(std::move(options));
}

HttpClient::~HttpClient() = default;

void HttpClient::post(std::span<const std::string> bodies, const Take& take, const Retried& retried,
                      const engine::OutsideWait& wait) {
  transfers_->post(bodies, take, retried, wait);
}

}  // namespace sluice::nodes
