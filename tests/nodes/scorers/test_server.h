#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice::nodes {

/// A web server of one test, on a free port of this machine. Each connection has a thread and is closed after one answer.
class TestServer {
 public:
  struct Request {
    std::string head;
    std::string body;
    size_t number;  // counts from 0, in the order of arrival
  };
  struct Answer {
    int status = 200;
    std::string body;
    std::chrono::milliseconds delay{};
    std::string headers = {};  // more of them, each with its line end
  };

  explicit TestServer(std::function<Answer(const Request&)> answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0) {
      ADD_FAILURE() << "no port to listen on";
    }
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~TestServer() {
    ::shutdown(listener_, SHUT_RDWR);  // wakes accept()
    acceptor_.join();
    ::close(listener_);
    for (std::thread& thread : connections_) thread.join();
  }

  std::string url(const std::string& path = "/score") const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  int port() const { return port_; }

  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void accept_all() {
    for (int connection = 0; (connection = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      connections_.emplace_back([this, connection] {
        serve(connection);
        ::close(connection);
      });
    }
  }

  void serve(int connection) {
    std::string text;
    size_t head = std::string::npos, length = 0;
    char bytes[4096];
    while (head == std::string::npos || text.size() < head + 4 + length) {
      const ssize_t count = ::recv(connection, bytes, sizeof bytes, 0);
      if (count <= 0) return;
      text.append(bytes, static_cast<size_t>(count));
      head = text.find("\r\n\r\n");
      const size_t at = text.find("Content-Length: ");
      if (head != std::string::npos && at < head) length = std::stoul(text.substr(at + 16));
    }
    Request request{text.substr(0, head), text.substr(head + 4), 0};
    {
      const std::lock_guard lock(mutex_);
      request.number = requests_.size();
      requests_.push_back(request);
    }
    const Answer answer = answer_(request);
    std::this_thread::sleep_for(answer.delay);
    const std::string reply = "HTTP/1.1 " + std::to_string(answer.status) +
                              " Status\r\nConnection: close\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n" +
                              answer.headers + "\r\n" + answer.body;
    ::send(connection, reply.data(), reply.size(), MSG_NOSIGNAL);
  }

  std::function<Answer(const Request&)> answer_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;  // guards requests_
  std::vector<Request> requests_;
  std::list<std::thread> connections_;  // of the acceptor's thread until it has ended
  std::thread acceptor_;
};

}  // namespace sluice::nodes
