#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "comm/sockets.h"

namespace c10d {
class Store;
}

namespace sluice::comm {

/// Rank 0, which serves the store, is gone or does not answer.
class StoreLost : public UserError {
 public:
  enum class How { kClosed, kSilent };

  StoreLost(const std::string& place, How how, double seconds);

  How how() const { return how_; }

 private:
  How how_;
};

/// Where rank 0 serves the store.
struct StorePlace {
  std::string host;  // as the user says it
  int port = 0;
  std::string digits;  // of the host's address

  std::string text() const { return host + ":" + std::to_string(port); }
};

/// One connection to the store of a run, which is c10d's TCPStore: keys with values, and queues of messages, in the memory of
/// rank 0. Beside what is not empty goes a checksum of it and its key.
///
/// One thread at a time; what waits keeps the connection for itself, so that each thread has its own. interrupt() is for any
/// thread. Failure: StoreLost where the connection is closed, or where there is no answer for `answer_seconds`; then this one is
/// of no use any more. UserError where something came damaged.
class StoreConnection {
 public:
  StoreConnection(const StorePlace& place, double answer_seconds);
  ~StoreConnection();

  void set(const std::string& key, std::string_view value);

  /// Sets what nobody has set, or what is empty. Returns what the key has now.
  std::string set_first(const std::string& key, std::string_view value);

  /// Sets what has this value. False: it has another one.
  bool replace(const std::string& key, std::string_view from, std::string_view to);

  /// Waits for: somebody to set the key. Ends when: it is set, or it is `until`; nothing then.
  std::optional<std::string> wait_for(const std::string& key, Clock::time_point until);

  /// The values of keys that are set.
  std::vector<std::string> values(const std::vector<std::string>& keys);

  /// Adds to a count, which begins with 0. Returns what it is now.
  int64_t add(const std::string& key, int64_t number);

  void push(const std::string& queue, std::string_view message);

  /// Takes the first message of a queue. Waits for: a message. Ends when: there is one, or after so many seconds; nothing then.
  std::optional<std::string> pop(const std::string& queue, double seconds);

  /// What waits for an answer fails soon, and every later call: for a thread that has to end though rank 0 does not answer.
  void interrupt();

  /// For process groups of LibTorch. Lives as long as this.
  c10d::Store& torch_store();

 private:
  struct Client;

  template <typename Call>
  auto guarded(Call call);
  enum class Empty { kMayBe, kDamaged };  // what nobody has set is empty, too
  std::string opened(const std::string& key, const std::vector<uint8_t>& bytes, Empty empty = Empty::kMayBe) const;
  [[noreturn]] void throw_damaged(const std::string& what) const;
  bool waited(const std::string& key, std::chrono::milliseconds at_most);
  void forget_waits();

  const StorePlace place_;
  const double answer_seconds_;
  std::unique_ptr<Client> client_;
  int waits_ = 0;  // for queues, since the last forget_waits()
};

}  // namespace sluice::comm
