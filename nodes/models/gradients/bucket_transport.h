#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace sluice::nodes {

/// How a bucket of gradients is added over the ranks, and how all of them get the weights that each has stepped: over the host or
/// from device to device. All ranks ask for the same in the same order. Belongs to the thread that trains.
class BucketTransport {
 public:
  using Done = std::function<void()>;

  virtual ~BucketTransport() = default;

  /// What the slots of this rank have added to a bucket goes out, and its sum comes back: all of it, or what this rank owns, and
  /// then the rest is zero. `done`, on some thread: so it is for all buckets, and the optimizer knows their squares; empty: it is
  /// not the last.
  virtual void add(size_t bucket, const Done& done) = 0;

  /// Each rank's part of all buckets goes to the others.
  virtual void bring_weights(const Done& done) = 0;

  /// Whether buckets may go out while a backward is under way whose iteration may be dropped, so that other ranks do not ask for
  /// them.
  virtual bool may_begin_early() const = 0;

  /// Nobody asks for anything more: returns when nobody uses what was given.
  virtual void forget() = 0;

  /// On the host, beside the optimizer's buffers.
  virtual int64_t bytes() const { return 0; }
};

}  // namespace sluice::nodes
