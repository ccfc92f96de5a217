#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/contract/columns/column.h"
#include "engine/contract/world/world.h"

namespace sluice::engine {

/// What a parcel is of.
enum class ParcelOf : uint8_t {
  kMicroBatch,
  kWeights,       // a piece of a bucket of a version
  kLanding,       // memory that versions come to, which ranks of a host have in common
  kFree,          // word that a rank has no readers there any more
  kShare,         // word that a rank has brought its part of a version there
  kAcknowledged,  // word that a rank has all of a version
  kConfirmed,     // word that all ranks have
  kPass,          // what ranks that compute passes together give each other
};

/// What a parcel is called by the rank that hands it over and by the one that gets it. A plain value.
struct ParcelKey {
  std::string edge;       // of the pipeline: which columns travel, and where to; of weights and passes the model
  int64_t iteration = 0;  // of weights the version
  int64_t number = 0;     // of the micro-batch, or of the group; of weights the bucket; of word the rank that gives it; of passes
                          // how many there were before between the two
  ParcelOf of = ParcelOf::kMicroBatch;
  int64_t piece = 0;  // of weights

  auto operator<=>(const ParcelKey&) const = default;
};

/// "micro-batch 7 of iteration 12 on edge 'generate'" or "piece 3 of bucket 0 of version 7 of 'actor'", for messages.
std::string text_of(const ParcelKey& key);

/// What one rank has of a micro-batch for another. A handle: columns are shared, and nobody changes them any more.
struct Parcel {
  std::string header;  // what only the receiver reads: the layout, which columns these are. At most kMostHeader bytes
  std::vector<ColumnData> columns;

  static constexpr size_t kMostHeader = size_t{1} << 20;
};

/// What a parcel takes of its receiver's credit: what its columns take there, text both as it comes and as strings, and up to 64
/// bytes more for each column. Walks the strings.
int64_t credit_bytes(const Parcel& parcel);

/// What has gone between this rank and another one since they met. A plain value.
struct ParcelTraffic {
  int64_t bytes_sent = 0;  // of columns and headers; also what was sent again
  int64_t bytes_received = 0;
  int64_t chunks_sent_again = 0;   // to the other rank, which found them damaged
  double credit_wait_seconds = 0;  // while there was something to send, and nothing of it was granted
};

/// Columns that go straight from the rank that has them to the rank that needs them.
///
/// A receiver grants credit before any byte moves: it says which parcel it is ready for, and how much it takes at most. A parcel
/// may be offered before it is granted, or after. Of the parcels that are both, those that were granted first go first. A parcel
/// waits for its own grant and no other, so no order of offers and grants stops a rank.
///
/// Threads: all calls from any thread, also from a callback; nobody waits inside a call. Callbacks come on one thread of this,
/// must be quick, must not throw and must not destroy this.
///
/// Failure: a rank that is lost, damage on the way, or a parcel that is larger than its grant ends everything: it is told once,
/// to whom the maker of this has named, and no callback comes after that.
class Parcels {
 public:
  using Arrived = std::function<void(Parcel parcel)>;

  virtual ~Parcels() = default;

  virtual World world() const = 0;

  /// Offers a parcel to another rank. `done`, which may be empty, is called when all of it is there. The key is new between the
  /// two.
  virtual void send(int to, ParcelKey key, Parcel parcel, std::function<void()> done) = 0;

  /// This rank is ready for a parcel of another one that takes at most so much (credit_bytes()). The credit is free again when
  /// the last handle of its columns is gone. The key is new between the two.
  virtual void receive(int from, ParcelKey key, int64_t most_bytes, Arrived arrived) = 0;

  /// From now on nobody fails by a rank that ends well with parcels between the two: the run ends early on all ranks, and what is
  /// still on its way belongs to iterations that all of them drop. Callbacks of what does not come are never called.
  virtual void expect_early_ends() = 0;

  /// By rank; of this rank itself there is none.
  virtual std::vector<ParcelTraffic> traffic() const = 0;

  /// This rank is through and says goodbye, so that nobody fails by it who has nothing left between the two. After it returns no
  /// callback comes, and what is offered or granted is dropped. Waits for callbacks that run, and that other ranks hear of it,
  /// for some seconds at most. By one thread; not by a callback.
  virtual void close() = 0;

  /// This rank's run has failed, or is over. Nothing is carried out any more, the other ranks fail by it, and callbacks that have
  /// not come are dropped. One that runs meanwhile ends by itself.
  virtual void abandon() = 0;
};

}  // namespace sluice::engine
