#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/columns/column.h"

namespace sluice::engine {

/// Bytes of the published weights that one rank owns.
struct OwnedBytes {
  int owner = 0;
  Range range;
};

/// What is published, by whom and to whom: the same on all ranks. A version is one flat stretch of bytes, in the precision that
/// it is sampled with. A plain value.
struct PublicationLayout {
  std::string model;
  std::vector<std::vector<OwnedBytes>> buckets;  // in order; all ranges follow one another from 0, and none is empty
  std::vector<int> receivers;                    // ranks, at least one; owners may be among them
  std::vector<int> hosts;                        // by rank: equal numbers share memory; empty: that is found out
  int64_t first_version = 0;

  size_t bytes() const { return buckets.empty() ? 0 : buckets.back().back().range.end; }
};

/// How a version went. A plain value.
struct PublishedVersion {
  int64_t version = 0;
  int64_t bytes = 0;  // all of it

  // As this rank has seen it. Seconds since this rank had to do with it first.
  int64_t bytes_sent = 0;      // by this rank
  int64_t bytes_received = 0;  // by this rank: not what it owns itself, and not what others bring to a landing that is common
  double landed_seconds = 0;   // 0: this rank receives nothing
  double opened_seconds = 0;
  double link_bytes_per_second = 0;  // at which bytes came to this rank when they came fastest, so far; 0: unknown

  // As the owner has seen it that had to wait longest: the same on all ranks.
  double published_seconds = 0;  // from its first offer until all receivers had acknowledged the version
  int slowest_receiver = 0;      // whose acknowledgement came last
  double slowest_seconds = 0;    // so long after the first one
};

/// Memory of a receiver for one version, which ranks of its host can write to and read. The publication is done with it once its
/// version is open; then the receiver may read it, and name it for another version when it has no readers any more.
///
/// Receivers of one host have it in common, unless some may be lost: it is there once, and each of them brings a part of the
/// version to it. A version lands there when all of them have named it.
class Landing {
 public:
  virtual ~Landing() = default;

  virtual std::span<std::byte> bytes() const = 0;

  /// Receivers that have it.
  virtual int sharers() const { return 1; }
};

/// Versions of a model's weights on their way from the ranks that own them to those that sample with them.
///
/// - An owner offers its ranges as they are done, so that they travel while the step goes on with others.
/// - A receiver says where a version may land; before that no byte of it moves to this rank. With a free place in its ring it
///   says so early, and generation goes on meanwhile.
/// - When all of a version is there and its checksums are right, the receiver is told, and acknowledges it: at once, or when it
///   has packed it.
/// - A version opens when all receivers have acknowledged it, on every rank. No rank samples with one that is not open.
///
/// Several versions may be on their way. They open in order, each one more than the last. A rank may leave when all versions
/// that it has offered or received are open, and not before, unless early ends are expected (engine/ranks/parcels.h): so a
/// receiver names no place for a version that will not come.
///
/// Threads: all calls from any thread, and all but new_landing() also from a callback; nobody else waits inside a call. A call
/// copies what this rank owns and receives itself. Callbacks come on the thread of the parcels, must be quick, and neither throw
/// nor destroy this.
///
/// Failure: as engine/ranks/parcels.h has it: it is told there, once, and nothing opens after that. InternalError for ranges that
/// are not this rank's or come twice, and for versions out of order.
class Publication {
 public:
  /// What this rank is told.
  struct Events {
    std::function<void(int64_t version, uint32_t checksum)> landed;  // all of it; of receivers
    std::function<void(const PublishedVersion& version)> opened;     // empty: this rank does not ask
  };

  virtual ~Publication() = default;

  /// Owner: memory for what it offers, which receivers of this host copy from by themselves. It may outlive this. Other memory
  /// may be offered too; then the owner makes all the copies.
  virtual std::shared_ptr<std::byte> new_source(size_t bytes) = 0;

  /// Owner: the stretches of one of its ranges that have a checksum each, in order. Whoever writes the bytes can take these
  /// meanwhile, which is cheaper than after it: the bytes are in a cache. Throws InternalError for what is no range of this
  /// rank.
  virtual std::vector<Range> stretches(Range range) const = 0;

  /// Owner: one of its ranges of the version, which `bytes` points to, is as it will be. The bytes are kept, and must not change,
  /// until those receivers have them that get them from here. `checksums`: CRC-32C of each of stretches(range); empty: they are
  /// taken here.
  virtual void offer(int64_t version, Range range, std::shared_ptr<const std::byte> bytes, std::vector<uint32_t> checksums) = 0;

  /// Receiver: memory for a version. It may outlive this. Receivers of one host ask for theirs in the same order; the first call
  /// of each is for the same memory, and so on. Waits for: the first of them to ask. Ends when: it does, or is lost (UserError).
  virtual std::shared_ptr<Landing> new_landing() = 0;

  /// Receiver: the version may land here from now on. In order of versions.
  virtual void receive(int64_t version, std::shared_ptr<Landing> into) = 0;

  /// Receiver: it has what it needs of a version that has landed.
  virtual void acknowledge(int64_t version) = 0;
};

/// Makes what the versions of a model go by. Outlives what it makes. Thread-safe.
class Publications {
 public:
  virtual ~Publications() = default;

  /// `layout`: as on all other ranks. This rank need be neither owner nor receiver. Of one
  /// model one at a time.
  virtual std::unique_ptr<Publication> publication(PublicationLayout layout, Publication::Events events) = 0;

  /// That receiver is lost: versions open without its word, of all models, now and later. It is there again, from that version
  /// on: all owners say so before any of them has offered a part of it.
  virtual void lose(int /*rank*/) {}
  virtual void take_back(int /*rank*/, int64_t /*first_version*/) {}
};

}  // namespace sluice::engine
