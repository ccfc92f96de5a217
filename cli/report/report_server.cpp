#include "cli/report/report_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/report/report_page.h"

namespace sluice::cli {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kSecondsToAsk = 1;  // who has connected; then the connection is closed
constexpr int kHttpOk = 200, kNotModified = 304, kForbidden = 403, kNotFound = 404, kNotAllowed = 405, kUnavailable = 503;

void answer_refusal(httplib::Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(why + "\n", "text/plain; charset=utf-8");
}

// The names of this address as a browser writes them; without the port where that is HTTP's own.
bool is_our_host(const httplib::Request& request, int port) {
  if (request.get_header_value_count("Host") != 1) return false;
  const std::string host = small_letters(request.get_header_value("Host"));
  return std::ranges::any_of(std::initializer_list<std::string>{kLoopback, "localhost", "[::1]"}, [&](const std::string& name) {
    return host == name + ":" + std::to_string(port) || (port == 80 && host == name);
  });
}

// Connections for threads, the newest first. One on which nothing is asked holds a thread until its time is over. Who asks comes
// in front of those that wait already, and so waits for one thread at most, however many there are. The library owns it.
class NewestFirst final : public httplib::TaskQueue {
 public:
  NewestFirst() {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }

  void enqueue(std::function<void()> connection) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(connection));
    }
    wake_.notify_one();
  }

  // The library closes a connection where it is worked on: at once, when the server has stopped.
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  static constexpr int kThreads = 8;

  // Waits for: a connection. Ends when: shutdown(), and none is left.
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> newest = std::move(waiting_.back());
      waiting_.pop_back();
      lock.unlock();
      newest();
      lock.lock();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<std::function<void()>> waiting_;
  bool ending_ = false;
};

[[noreturn]] void fail_to_listen(int code, uint16_t port) {
  const std::string place = "port " + std::to_string(port) + " of " + kLoopback;
  if (code == EADDRINUSE)
    throw UserError(place + " is in use by another program", "choose another one, or none: --serve alone takes one that is free");
  throw UserError("cannot listen at " + place + ": " + std::strerror(code),
                  "choose another one, or none: --serve alone takes one that is free");
}

}  // namespace

class ReportServer::Http {
 public:
  Http(LiveReport& report, uint16_t port) : report_(report) {
    settle();
    errno = 0;
    port_ = port == 0 ? server_.bind_to_any_port(kLoopback) : server_.bind_to_port(kLoopback, port) ? port : -1;
    if (port_ <= 0) fail_to_listen(errno, port);
    thread_ = std::thread([this] {
      server_.listen_after_bind();
      ended_ = true;
    });
    while (!server_.is_running() && !ended_) std::this_thread::yield();  // before that it cannot be stopped
  }

  ~Http() {
    server_.stop();
    thread_.join();
  }

  int port() const { return port_; }
  bool is_listening() const { return !ended_; }

 private:
  void settle() {
    // Not the library's SO_REUSEPORT, with which two programs share a port without knowing.
    server_.set_socket_options([](auto socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server_.new_task_queue = [] { return new NewestFirst; };  // the library deletes it
    server_.set_keep_alive_max_count(1);                      // nobody waits for an idle connection at the end
    server_.set_keep_alive_timeout(kSecondsToAsk);
    server_.set_read_timeout(kSecondsToAsk);
    server_.set_payload_max_length(0);
    server_.set_default_headers({{"Content-Security-Policy", report_policy(PageIs::kServed) + "; frame-ancestors 'none'"},
                                 {"Cache-Control", "no-store"},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"},
                                 {"Cross-Origin-Opener-Policy", "same-origin"},
                                 {"Referrer-Policy", "no-referrer"}});
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return is_refused(request, response) ? httplib::Server::HandlerResponse::Handled
                                           : httplib::Server::HandlerResponse::Unhandled;
    });
    server_.Get("/", [this](const httplib::Request&, httplib::Response& response) {
      const auto state = report_.now();
      response.set_content(report_page(PageIs::kServed, state->title, state->report), "text/html; charset=utf-8");
    });
    server_.Get("/report.json",
                [this](const httplib::Request& request, httplib::Response& response) { answer_data(request, response); });
    server_.Get(".*", [](const httplib::Request&, httplib::Response& response) {
      answer_refusal(response, kNotFound, "nothing is here");
    });
  }

  bool is_refused(const httplib::Request& request, httplib::Response& response) const {
    if (!is_our_host(request, port_)) {
      answer_refusal(response, kForbidden, "this server answers only to the address that it has told");
    } else if (request.method != "GET" && request.method != "HEAD") {
      response.set_header("Allow", "GET, HEAD");
      answer_refusal(response, kNotAllowed, "only GET and HEAD are answered");
    } else {
      return false;
    }
    return true;
  }

  void answer_data(const httplib::Request& request, httplib::Response& response) {
    const auto state = report_.now();
    response.set_header("ETag", state->tag);
    if (!state->problem.empty()) return answer_refusal(response, kUnavailable, state->problem);
    if (request.get_header_value("If-None-Match") == state->tag) {
      response.status = kNotModified;
      return;
    }
    response.status = kHttpOk;
    response.set_content(report_data(state->report), "application/json");
  }

  LiveReport& report_;
  httplib::Server server_;
  int port_ = -1;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

ReportServer::ReportServer(LiveReport& report, uint16_t port) : http_(std::make_unique<Http>(report, port)) {}
ReportServer::~ReportServer() = default;

std::string ReportServer::address() const {
  return "http://" + std::string(kLoopback) + ":" + std::to_string(http_->port()) + "/";
}
bool ReportServer::is_listening() const { return http_->is_listening(); }

}  // namespace sluice::cli
