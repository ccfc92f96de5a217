#pragma once

#include <c10/core/Stream.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "base/numbers/random.h"

namespace sluice::fake {

using Work = std::function<void()>;

/// A queue of work and the thread that does it, one piece after the other. The thread begins when more is queued than the
/// schedule lets wait, or when somebody waits: so work may be far behind the host, or close. Thread-safe. Lasts as long as the
/// process.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Returns what wait_for() takes.
  int64_t queue(Work work);

  /// Until the piece of work that queue() gave this number is done, and all before it. Not from this stream's own work. Does
  /// not throw what the work threw.
  void wait_for(int64_t piece);

  /// Until all that is queued now is done. Throws what the first piece that failed threw; once.
  void wait();

  bool is_idle();
  bool has_done(int64_t piece);
  int64_t last_queued();
  void set_schedule(uint64_t seed);

 private:
  void run();
  bool has_to_work() const;

  std::mutex mutex_;
  std::condition_variable to_do_, done_some_;
  std::deque<Work> queue_;
  int64_t queued_ = 0, done_ = 0;  // pieces; done_ + queue_.size() == queued_, but for the one that is being done
  std::multiset<int64_t> wanted_;  // pieces that somebody waits for
  int64_t held_ = 0;               // so many pieces wait until somebody wants them
  RandomStream random_{1, 0};
  std::exception_ptr failure_;
};

/// A point in the work of a stream.
struct Event {
  Stream* stream = nullptr;  // null: never recorded
  int64_t piece = 0;
  std::shared_ptr<std::chrono::steady_clock::time_point> reached =
      nullptr;  // of one that tells the time: when the stream was there
};

Stream& stream_of(c10::Stream stream);
void wait_for_all();                                  // streams of all devices
c10::Stream current_stream(c10::DeviceIndex device);  // of the calling thread

/// Work that is queued after this on `waiting` waits for the event.
void make_wait(Stream& waiting, const Event& event);

}  // namespace sluice::fake
