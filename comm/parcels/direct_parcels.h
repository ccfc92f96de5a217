#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/parcels/block_pool.h"
#include "comm/parcels/byte_parcel.h"
#include "comm/parcels/chunk.h"
#include "comm/parcels/expendable_ranks.h"
#include "comm/parcels/parcel_peer.h"
#include "comm/parcels/peer_sockets.h"
#include "comm/parcels/stall_watch.h"
#include "comm/parcels_without_lost.h"

namespace sluice::comm {

/// Parcels over a connection between each two ranks, of which one thread looks after all.
///
/// A receiver takes a block of memory for each parcel that it grants (comm/parcels/block_pool.h), and the columns that arrive lie
/// in it. Bytes come in chunks of 1 MiB, each with a CRC-32C, that go straight from the sender's columns into the block:
///
/// - Between ranks of one host the block is shared memory, whose descriptor goes to the sender with the first grant of it, over a
///   Unix socket. The sender writes into it; nothing else is copied. It is a memfd, so it has no name: whoever is killed, nothing
///   is left.
/// - Between hosts the bytes go over the same TCP connection as what is said about them.
///
/// Beside the blocks a rank holds at most one chunk for each rank that it sends to: where a chunk consists of many strings, it is
/// put together. Blocks hold no more than what was granted at one time, and are used again.
///
/// Not over Gloo, which is what gradients go over: a transfer of Gloo can only be waited for, so it would take a thread for each
/// direction and rank, and 1 MiB at a time goes at 1.9 GB/s between two processes of this host where a socket takes 3.1 GB/s.
///
/// Threads: as engine/ranks/parcels.h says; one thread carries all out, and wakes once a second to look for stalls where there is
/// nothing to do.
///
/// Failure: `failed` is called once, on the thread, with what Outgoing and Incoming throw, or a ParcelRankLost; it must
/// neither throw nor destroy this. All connections are closed before, so that the other ranks fail as well; but not where another
/// rank has closed its own, which they notice by themselves: then this rank's stay until this is destroyed. A rank that takes
/// nothing of what is for it for `stalled_seconds`, as over a link that is cut, is a failure too, which names it and a parcel
/// between the two: whether the rank lives others say sooner.
///
/// close() and the destructor say goodbye to each rank to which all is sent and from which nothing is to come, and wait until it
/// has heard that, which it does at once, or some seconds. For others there is no goodbye, and they fail. After
/// expect_early_ends() what is not done is forgotten, and all ranks hear a goodbye that says so: another rank takes it well even
/// where nobody has told it yet that the run ends early. What is for a rank that has left is dropped then.
class DirectParcels final : public ParcelsWithoutLost {
 public:
  using Failed = std::function<void(std::exception_ptr)>;

  static constexpr double kStalledSeconds = 60;

  /// `peers`: as meet_peers() or come_back() returns them; with a rank without a socket nothing is exchanged.
  DirectParcels(engine::World world, std::vector<PeerSocket> peers, Failed failed, DamageOptions options = {},
                ExpendableRanks expendable = {}, double stalled_seconds = kStalledSeconds);
  ~DirectParcels() override;

  engine::World world() const override { return world_; }
  void send(int to, engine::ParcelKey key, engine::Parcel parcel, std::function<void()> done) override;
  void receive(int from, engine::ParcelKey key, int64_t most_bytes, Arrived arrived) override;

  /// Likewise for bytes as they are, which come to a place that the receiver names. Nobody else writes there until they have
  /// come. What `landed` throws is a failure of this.
  void send_bytes(int to, engine::ParcelKey key, ByteParcel parcel, std::function<void()> done);
  void receive_bytes(int from, engine::ParcelKey key, LandingPlace place, Landed landed);

  /// Memory of new_landing() goes to a rank of this host, which has it as if it had made it. That is nothing to wait for.
  void lend(int to, engine::ParcelKey key, std::shared_ptr<Block> block);
  void borrow(int from, engine::ParcelKey key, Borrowed borrowed);

  /// Memory for such places, which ranks of this host can map. It may outlive this.
  std::shared_ptr<Block> new_landing(size_t bytes) { return pool_.take_own(bytes); }

  /// Calls this on the thread, in the order in which it was asked to, unless this ends before.
  void post(std::function<void()> what);

  const std::vector<int>& hosts() const override { return hosts_; }
  void lose(int rank) override;
  void take_back(int rank, int64_t incarnation) override;

  void expect_early_ends() override { expects_early_ends_ = true; }
  std::vector<engine::ParcelTraffic> traffic() const override;
  void close() override;
  void abandon() override;

  /// What blocks have held at most.
  int64_t most_held() const { return pool_.most_held(); }

 private:
  enum class Ending { kNot, kWell, kAbandoned };

  void command(int rank, std::function<void(ParcelPeer&)> what);
  void end(Ending ending);
  void wake();
  void carry_out();
  bool turn();
  bool carry_out_commands();
  void look_for_stalls();
  void tell_of_gone_blocks();
  void wait(bool has_more);
  void leave();
  void leave_without_goodbye();
  void fail(std::exception_ptr reason);
  void check_other(int rank) const;
  std::unique_ptr<ParcelPeer> new_peer(int rank, int64_t incarnation, PeerSocket socket);
  void replace(int rank, int64_t incarnation, PeerSocket socket);

  const engine::World world_;
  const Failed failed_;
  const ExpendableRanks expendable_;
  const double stalled_seconds_;
  const DamageOptions options_;
  const Descriptor wakes_;               // an eventfd
  std::atomic<bool> has_ended_ = false;  // nothing more is carried out; changed with the lock
  std::atomic<bool> expects_early_ends_ = false;
  BlockPool pool_;
  std::vector<int> hosts_;
  int next_peer_ = 0;                     // its number
  StallWatch::Clock::time_point looked_;  // for stalls; of the thread

  mutable std::mutex peers_mutex_;                  // of who is a peer, which the thread alone changes
  std::vector<std::unique_ptr<ParcelPeer>> peers_;  // by rank; null: this one, or one without a connection
  std::vector<engine::ParcelTraffic> of_lost_;      // by rank: of processes whose place others have taken

  std::mutex mutex_;  // of all below
  std::deque<std::function<void()>> commands_;
  Ending ending_ = Ending::kNot;
  std::jthread thread_;
};

}  // namespace sluice::comm
