#include "tests/engine/ranks/mail_in_one_process.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/numbers/random.h"
#include "engine/ranks/message_handlers.h"

namespace sluice::engine::testing {

class MailInOneProcess::Rank final : public Mail {
 public:
  Rank(MailInOneProcess& all, World world, uint64_t seed, int64_t pause_us)
      : all_(all),
        world_(world),
        pause_us_(pause_us),
        random_(seed, 77, static_cast<uint32_t>(world.rank)),
        inboxes_(static_cast<size_t>(world.size)),
        thread_([this] { hand_on(); }) {}
  ~Rank() override { close(); }

  World world() const override { return world_; }

  void send(int to, Channel channel, std::string message) override {
    if (all_.lost_[static_cast<size_t>(to)] || all_.lost_[static_cast<size_t>(world_.rank)]) return;
    all_.current(to).take_in(world_.rank, {channel, std::move(message), all_.incarnation(world_.rank)});
  }

  void receive(Channel channel, Handler handler) override {
    handlers_.set(channel, std::move(handler));
    const std::lock_guard lock(mutex_);
    look_again_ = true;
    came_.notify_one();
  }

  void close() override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      came_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Message {
    Channel channel{};
    std::string text;
    int64_t incarnation = 0;  // of the sender
  };

  void take_in(int from, Message message) {
    const std::lock_guard lock(mutex_);
    inboxes_[static_cast<size_t>(from)].push_back(std::move(message));
    look_again_ = true;
    came_.notify_one();
  }

  void hand_on() {
    try {
      while (wait()) {
        while (auto next = any()) {
          pause();
          if (all_.lost_[static_cast<size_t>(next->first)] || all_.lost_[static_cast<size_t>(world_.rank)]) continue;
          if (next->second.incarnation != all_.incarnation(next->first)) continue;
          handlers_.keep(next->first, next->second.channel, std::move(next->second.text));
          handlers_.handle_kept();
        }
        handlers_.handle_kept();
      }
    } catch (...) {
      all_.failed(std::current_exception());
    }
  }

  // Waits for: a message or a handler. Ends when: there is one, or the mail is closed; false then.
  bool wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return look_again_ || closed_; });
    look_again_ = false;
    return !closed_;
  }

  // The next message of a sender at random.
  std::optional<std::pair<int, Message>> any() {
    const std::lock_guard lock(mutex_);
    if (closed_) return {};
    const size_t size = inboxes_.size(), first = random_.below(size);
    for (size_t i = 0; i < size; ++i) {
      const size_t from = (first + i) % size;
      if (inboxes_[from].empty()) continue;
      std::pair<int, Message> next(static_cast<int>(from), std::move(inboxes_[from].front()));
      inboxes_[from].pop_front();
      return next;
    }
    return {};
  }

  void pause() {
    if (pause_us_ == 0) return;
    const auto time = static_cast<int64_t>(random_.below(static_cast<uint64_t>(pause_us_)));
    if (time > pause_us_ / 2) std::this_thread::sleep_for(std::chrono::microseconds(time));
  }

  MailInOneProcess& all_;
  const World world_;
  const int64_t pause_us_;
  RandomStream random_;  // of the thread
  MessageHandlers handlers_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable came_;
  std::vector<std::deque<Message>> inboxes_;  // by sender
  bool look_again_ = false;
  bool closed_ = false;
  std::thread thread_;  // last: it uses the rest
};

MailInOneProcess::MailInOneProcess(int size, uint64_t seed, int64_t pause_us)
    : seed_(seed),
      pause_us_(pause_us),
      lost_(static_cast<size_t>(size)),
      incarnations_(static_cast<size_t>(size)),
      ranks_(static_cast<size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) {
    all_ranks_.push_back(std::make_unique<Rank>(*this, World{.rank = rank, .size = size}, seed, pause_us));
    ranks_[static_cast<size_t>(rank)] = all_ranks_.back().get();
  }
}

MailInOneProcess::~MailInOneProcess() { close(); }

Mail& MailInOneProcess::rank(int index) { return current(index); }

int64_t MailInOneProcess::take_back(int rank) {
  const auto index = static_cast<size_t>(rank);
  const World world{.rank = rank, .size = static_cast<int>(ranks_.size())};
  auto made = std::make_unique<Rank>(*this, world, seed_, pause_us_);
  const std::lock_guard lock(mutex_);
  ranks_[index] = made.get();
  all_ranks_.push_back(std::move(made));
  const int64_t incarnation = ++incarnations_[index];
  lost_[index] = false;
  return incarnation;
}

void MailInOneProcess::close() {
  for (const auto& rank : all_ranks_) rank->close();
}

std::vector<std::exception_ptr> MailInOneProcess::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

void MailInOneProcess::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  failures_.push_back(std::move(error));
}

}  // namespace sluice::engine::testing
