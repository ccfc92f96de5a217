#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/store.h"
#include "engine/ranks/mail.h"
#include "engine/ranks/message_handlers.h"

namespace sluice::comm {

/// Mail through queues of the store: an inbox for each rank, which a thread of this empties. Every message has a number, by which
/// the receiver sees that nothing is lost and nothing comes twice. Long messages go in pieces: the store takes some megabytes.
///
/// Lives shorter than the store. Threads: send() from any, one after the other, without an answer to wait for; handlers on the
/// thread of this alone, and never at once.
///
/// Failure: `failed` is called once, on whatever thread, with StoreLost where rank 0 is gone, or with what a handler threw, or
/// with InternalError where messages do not come as they were sent. It must not throw, and must not close the mail. Nothing is
/// sent or received then.
class StoreMail final : public engine::Mail {
 public:
  using Failed = std::function<void(std::exception_ptr)>;

  StoreMail(const Store& store, Failed failed);
  ~StoreMail() override;

  engine::World world() const override { return world_; }
  void send(int to, Channel channel, std::string message) override;
  void receive(Channel channel, Handler handler) override;
  void close() override;

  /// That rank is lost, and the others go on without it: what is for it is dropped, and what still comes from it.
  void lose(int rank);

  /// Another process has taken its place.
  void take_back(int rank, int64_t incarnation);

  /// Where this process has taken the place of another one: the others take what it sends from now on. Before that it is kept
  /// here.
  void begin();

 private:
  /// What has come from one rank.
  struct Sender {
    int64_t incarnation = 0;
    uint64_t next = 0;   // number of the next piece
    std::string pieces;  // of a message that is not there as a whole
  };

  struct Held {
    int to;
    uint8_t kind;
    std::string message;
  };

  void push(int to, uint8_t kind, std::string_view message);
  void push_pieces(int to, uint8_t kind, std::string_view message);
  void push_piece(int to, uint8_t kind, bool is_last, std::string_view piece);
  void wake();
  void empty_inbox();
  void take_in(const std::string& frame);
  void fail(std::exception_ptr error);

  const engine::World world_;
  const Failed failed_;
  engine::MessageHandlers handlers_;
  std::atomic<bool> over_ = false;                  // closed or failed
  std::vector<std::atomic<int64_t>> incarnations_;  // by rank
  std::vector<std::atomic<bool>> lost_;             // likewise

  std::mutex sending_;  // guards what follows
  std::unique_ptr<StoreConnection> out_;
  std::vector<uint64_t> sent_;  // pieces, by receiver
  bool is_held_;                // until begin()
  std::vector<Held> held_;

  std::unique_ptr<StoreConnection> in_;  // of the thread
  std::vector<Sender> senders_;          // likewise, by rank
  std::mutex ending_;                    // guards what follows
  std::condition_variable ended_now_;
  bool ended_ = false;  // the thread
  std::thread thread_;  // last: it uses the rest
};

}  // namespace sluice::comm
