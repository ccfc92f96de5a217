#include "nodes/scorers/http/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/no_pipe_signal.h"
#include "base/strings.h"
#include "engine/contract/version.h"

namespace sluice::nodes {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostBody = 64 << 20;
constexpr milliseconds kLongestPause{30'000};
constexpr curl_off_t kLongestWanted = 300;  // seconds

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool is_this_machine(const std::string& url) {
  const std::unique_ptr<CURLU, UrlDeleter> parsed(curl_url());
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return false;
  const std::string host = small_letters(part_of(parsed.get(), CURLUPART_HOST));
  return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

// As people are told it.
std::string without_password(const std::string& url) {
  const std::unique_ptr<CURLU, UrlDeleter> parsed(curl_url());
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return url;
  if (part_of(parsed.get(), CURLUPART_USER).empty()) return url;
  curl_url_set(parsed.get(), CURLUPART_USER, nullptr, 0);
  curl_url_set(parsed.get(), CURLUPART_PASSWORD, nullptr, 0);
  return part_of(parsed.get(), CURLUPART_URL);
}

// The library's own initialisation; it must come before its first use, and counts.
class Library {
 public:
  Library() { curl_global_init(CURL_GLOBAL_DEFAULT); }
};

bool may_pass(CURLcode code, long status) {
  if (code == CURLE_OK) return status == 408 || status == 429 || status >= 500;
  return code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_URL_MALFORMAT && code != CURLE_WRITE_ERROR;
}

// The first bytes of a body, on one line.
std::string beginning(const std::string& body) {
  constexpr size_t kMost = 200;
  std::string text(trim(std::string_view(body).substr(0, kMost)));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text.empty() ? "an empty body" : text + (body.size() > kMost ? "..." : "");
}

}  // namespace

std::string fault_of_url(const std::string& url) {
  const std::unique_ptr<CURLU, UrlDeleter> parsed(curl_url());
  const size_t slashes = url.find("://");
  const bool has_no_host =
      slashes != std::string::npos && url.find(":///") == slashes;  // curl would take the first folder for it
  if (has_no_host || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) {
    return sluice::quoted(url) + " is not a url";
  }
  const std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME);
  return scheme == "http" || scheme == "https" ? "" : sluice::quoted(url) + " does not begin with http:// or https://";
}

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

  std::vector<HttpReply> post(std::span<const std::string> bodies, const engine::OutsideWait& outside) {
    try {
      return replies_to(bodies, outside);
    } catch (...) {
      give_up();
      throw;
    }
  }

 private:
  std::vector<HttpReply> replies_to(std::span<const std::string> bodies, const engine::OutsideWait& outside) {
    const NoPipeSignal no_signal;
    std::vector<HttpReply> replies(bodies.size());
    for (size_t i = 0; i < bodies.size(); ++i) waiting_.push_back({i, next_url_++ % options_.urls.size(), 0, Clock::now()});
    while (!waiting_.empty() || !running_.empty()) {
      outside.go_on();
      start_what_is_due(bodies);
      int still_running = 0;
      curl_multi_perform(multi_, &still_running);
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result, replies);
      }
      wait();
    }
    return replies;
  }

  void give_up() {
    for (const auto& transfer : running_) end(*transfer);
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
    if (transfer.body.size() + count > kMostBody) {
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
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.timeout.count()));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(transfer.error));
    set(CURLOPT_WRITEFUNCTION, &Transfers::receive);
    set(CURLOPT_WRITEDATA, &transfer);
    if (is_this_machine(url)) set(CURLOPT_PROXY, "");
    curl_multi_add_handle(multi_, transfer.handle);
  }

  void finish(CURL* handle, CURLcode code, std::vector<HttpReply>& replies) {
    const auto found = std::ranges::find(running_, handle, [](const auto& transfer) { return transfer->handle; });
    SLUICE_CHECK(found != running_.end(), "a transfer that nobody started");
    const std::unique_ptr<Transfer> transfer = std::move(*found);
    running_.erase(found);
    long status = 0;
    curl_off_t wanted = 0;  // Retry-After
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &wanted);
    end(*transfer);

    const Attempt& attempt = transfer->attempt;
    if (code == CURLE_OK && status >= 200 && status < 300) {
      replies[attempt.request] = {without_password(options_.urls[attempt.url]), std::move(transfer->body), {}};
    } else if (may_pass(code, status) && attempt.number < options_.retries) {
      milliseconds pause = std::min(kLongestPause, options_.first_pause * (int64_t{1} << std::min<size_t>(attempt.number, 20)));
      const bool goes_there_again = options_.urls.size() == 1;
      if (goes_there_again) pause = std::max(pause, milliseconds(1000 * std::min(wanted, kLongestWanted)));
      waiting_.push_back({attempt.request, (attempt.url + 1) % options_.urls.size(), attempt.number + 1, Clock::now() + pause});
    } else {
      replies[attempt.request] = {without_password(options_.urls[attempt.url]), {}, failure_of(*transfer, code, status)};
    }
  }

  std::string failure_of(const Transfer& transfer, CURLcode code, long status) const {
    const std::string url = without_password(options_.urls[transfer.attempt.url]);
    const std::string attempts =
        transfer.attempt.number == 0 ? "" : " (after " + std::to_string(transfer.attempt.number + 1) + " attempts)";
    if (transfer.too_long) return url + " answered more than " + human_bytes(kMostBody);
    if (code == CURLE_OK) return url + " answered " + std::to_string(status) + ": " + beginning(transfer.body) + attempts;
    const std::string why = transfer.error[0] != '\0' ? transfer.error : curl_easy_strerror(code);
    return url + ": " + why + attempts;
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

  void end(const Transfer& transfer) {
    curl_multi_remove_handle(multi_, transfer.handle);
    curl_easy_cleanup(transfer.handle);
  }

  static std::string user_agent() { return std::string("sluice/") + kVersionText; }

  HttpClientOptions options_;
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

std::vector<HttpReply> HttpClient::post(std::span<const std::string> bodies, const engine::OutsideWait& wait) {
  return transfers_->post(bodies, wait);
}

}  // namespace sluice::nodes
