#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace c10d {
class Backend;
class Work;
}  // namespace c10d

namespace sluice::comm {

/// What wait() and whoever begins a transfer throw once transfers are given up.
struct GivenUp {};

/// Floats on their way to and from other ranks, straight out of and into the caller's memory. Transfers are in batches, which are
/// numbered and waited for as a whole.
///
/// Transfers between two ranks with one tag arrive in the order in which they were begun. The memory belongs to the transfers until
/// their batch was waited for, or close() returned.
///
/// Threads: one begins, waits and closes; any other may give_up(). Failure: throws what Gloo throws when a rank is lost; then
/// nothing but close() makes sense.
class Transfers {
 public:
  Transfers(std::shared_ptr<c10d::Backend> ranks, int batches);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  void send(int batch, const float* from, int64_t count, int rank, int tag);
  void receive(int batch, float* into, int64_t count, int rank, int tag);

  /// Waits for: all transfers of the batch, after which it is empty. Ends when: they are done, a rank is lost, or they are given
  /// up.
  void wait(int batch);

  /// All waits end, now and later.
  void give_up();

  /// Ends all transfers and the connections, by which the other ranks learn of it.
  void close();

 private:
  using Work = c10::intrusive_ptr<c10d::Work>;

  std::vector<Work>& batch(int number) { return batches_[static_cast<size_t>(number)]; }

  std::shared_ptr<c10d::Backend> ranks_;
  std::mutex mutex_;  // of batches_, which only one thread changes, and given_up_
  std::vector<std::vector<Work>> batches_;
  bool given_up_ = false;
};

}  // namespace sluice::comm
