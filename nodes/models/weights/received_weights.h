#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/contract/model.h"
#include "engine/contract/world/publication.h"
#include "models/layers/weights.h"
#include "nodes/models/sampling/sampled_weights.h"
#include "nodes/models/weights/versions_together.h"
#include "nodes/models/weights/wire_layout.h"

namespace sluice::nodes {

/// Where versions of a model land that other ranks train.
struct LandedModel {
  std::shared_ptr<engine::Landing> landing;
  models::Weights weights;      // of the model: its trained tensors are views of the landing
  int64_t bytes_of_others = 0;  // of the landing, where ranks have it in common
};

/// `live`: whose values are there at first, of the dtypes that it is sampled with.
LandedModel landed_model(const std::string& model, const WireLayout& layout, const models::Weights& live,
                         const PublicationRanks& ranks, engine::Publications& publications);

/// The versions of a model that other ranks train, on a rank that samples from it. A version lands in one place, which ranks of a
/// host have in common, is packed from there into the memory of the oldest one, and is acknowledged then. The next may land when
/// that one is open, and so packed on all ranks. What is packed while generation goes on takes one thread, which this owns.
///
/// Ranks of a host may have what they sample from in common (SampledWeights). A version lands when all of them have named a place
/// for it, so nobody samples from that memory on any of them when they pack it, each its part.
///
/// Of ranks that sample together each receives every version, and has a part of it packed. The one that leads them tells the
/// others to receive it, and to pack it when it has done so itself: then nothing samples from that memory on any of them.
///
/// Threads: receive() from any, one version after the other; `done` is called on the thread of the publication or of this.
/// Failure: of the publication, as engine/contract/world/publication.h has it; a version that does not come is waited for by
/// nobody here. A version that cannot be packed, as without memory, is not acknowledged: `done` gets why, and nothing is packed
/// after that.
class ReceivedWeights {
 public:
  /// All references outlive this.
  ReceivedWeights(std::string model, WireLayout layout, LandedModel landed, const PublicationRanks& ranks,
                  engine::Publications& publications, SampledWeights& sampled);

  /// Waits for: what is being packed, but for no other rank that packs, too: one that ends early may be gone.
  ~ReceivedWeights();

  /// Memory for it is free: where the version that is packed last was `version` minus as many as are readable, nothing samples
  /// from that any more.
  void receive(int64_t version, engine::VersionReceived done);

  /// This rank leads those that it samples with; outlives this. Before the first receive().
  void set_lead(VersionsLead* lead) { lead_ = lead; }

  /// Of a rank that samples with one that leads: that one has packed it. In order of versions.
  void let_take(int64_t version);

  /// Forgets all versions: the next is this one.
  void restart(int64_t first_version);

 private:
  void begin(int64_t first_version);
  void grant_next();  // with the lock
  void landed(int64_t version);
  void opened(const engine::PublishedVersion& version);
  void tell(int64_t version, const engine::ReceivedVersion& received);
  bool take(int64_t version);
  bool is_ending();
  bool may_take(int64_t version) const;  // with the lock
  void pack_what_lands();

  const std::string model_;
  const WireLayout layout_;
  const PublicationRanks ranks_;
  engine::Publications& publications_;
  SampledWeights& sampled_;
  VersionsLead* lead_ = nullptr;
  const LandedModel landed_model_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<int64_t> awaited_;                         // not granted yet
  std::map<int64_t, engine::VersionReceived> to_tell_;  // by version that is not open
  bool landing_is_taken_ = false;                       // by a version that is not open
  std::deque<int64_t> landed_;                          // to be packed
  int64_t let_taken_;                                   // the last one whose memory is free on all ranks that sample together
  bool ending_ = false;
  std::unique_ptr<engine::Publication> publication_;
  std::thread packer_;
};

}  // namespace sluice::nodes
