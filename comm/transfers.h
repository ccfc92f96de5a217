#pragma once

#include <c10/util/intrusive_ptr.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/near_memory.h"

namespace c10d {
class Backend;
class Work;
}  // namespace c10d

namespace sluice::comm {

/// What wait() and whoever begins a transfer throw once transfers are given up.
struct GivenUp {};

/// How floats may come from other ranks: out of the memory of those that allow it, and from others over the connections. A plain
/// value.
struct Reach {
  std::function<bool(uint64_t process, uint64_t address, void* into, uint64_t size)> read =
      read_memory;  // empty: no memory is read
};

/// Floats on their way to and from other ranks, straight out of and into the caller's memory. Transfers are in batches, which are
/// numbered and waited for as a whole. A near rank, once find_near() has found it, is told where many floats lie, copies them
/// itself, and says when it has. Over the connections go few floats, those to other ranks, and those that nobody can read, as in
/// memory that a device shares; a checksum goes beside them.
///
/// Transfers between two ranks with one tag arrive in the order in which they were begun; ranks wait for the batches of their
/// receives in that order, too. The memory belongs to the transfers until their batch was waited for, or close() returned.
///
/// Threads: one begins, waits and closes; any other may give_up(). Failure: throws what Gloo throws when a rank is lost, and a
/// UserError where floats came damaged; then nothing but close() makes sense. Ranks that were given up may still read what was
/// sent, for nobody's use.
class Transfers {
 public:
  static constexpr int64_t kFewFloats = 1 << 12;  // up to so many: telling and answering cost more than a second copy

  Transfers(std::shared_ptr<c10d::Backend> ranks, int batches, Reach reach = {});
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Waits for: all ranks to do the same, before the first of their transfers; where no memory is read, nobody. Ends as wait()
  /// does.
  void find_near();

  void send(int batch, const float* from, int64_t count, int rank, int tag);
  void receive(int batch, float* into, int64_t count, int rank, int tag);

  /// Waits for: all transfers of the batch, after which it is empty. Ends when: they are done, a rank is lost, or they are given
  /// up; not by time, since another rank may compute for long before it sends. All ranks that send something to this one must
  /// have begun that before they wait for what depends on its arrival.
  void wait(int batch);

  /// All waits end, now and later.
  void give_up();

  /// Ends all transfers and the connections, by which the other ranks learn of it.
  void close();

 private:
  using Work = c10::intrusive_ptr<c10d::Work>;
  // An address, null for what comes over the connection; a checksum; or nothing, but that it comes.
  using Note = std::array<float, 2>;

  // What a near rank is to tell, and where it goes.
  struct Arrival {
    Work told;
    const Note* where;
    float* into;
    int64_t count;
    int rank;
    int tag;
  };

  // Floats that came over the connection, and what their checksum was.
  struct Check {
    const Note* told;
    const float* floats;
    int64_t count;
    int rank;
  };

  struct Batch {
    std::vector<Work> works;
    std::vector<Arrival> arrivals;
    std::vector<Check> checks;
    std::deque<Note> notes;  // what small messages come from and go to
  };

  Batch& batch(int number) { return batches_[static_cast<size_t>(number)]; }
  bool is_near(const std::vector<float>& ranks, int rank, int64_t count) const;
  Work begin_send(const float* from, int64_t count, int rank, int tag);
  Work begin_receive(float* into, int64_t count, int rank, int tag);
  void send_checked(Batch& in, const float* from, int64_t count, int rank, int tag);
  void receive_checked(Batch& in, float* into, int64_t count, int rank, int tag);
  static void wait_for(const Work& work);
  static void check(const Check& arrived);
  void let_go(Batch& of);
  void fetch(Batch& of, const Arrival& arrival);
  void copy(uint64_t from, const Arrival& arrival);
  bool others_can_read(const float* from, int64_t count) const;
  void throw_if_given_up();

  std::shared_ptr<c10d::Backend> ranks_;
  const Reach reach_;
  const OwnSample sample_;
  std::vector<uint64_t> processes_;  // of the ranks
  std::vector<float> near_;          // 1: this rank reads the memory of that one
  std::vector<float> near_to_;       // 1: that rank reads the memory of this one
  std::mutex mutex_;                 // of batches_, which only one thread changes, and given_up_
  std::vector<Batch> batches_;
  bool given_up_ = false;
};

}  // namespace sluice::comm
