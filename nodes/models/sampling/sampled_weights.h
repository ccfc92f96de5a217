#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/column_share.h"
#include "models/layers/weights.h"
#include "models/sample/packed_weights.h"
#include "models/train/adamw.h"
#include "nodes/models/sampling/common_copies.h"
#include "nodes/models/sampling/sampling_lead.h"

namespace sluice::nodes {

/// What a model is sampled from: its readable versions, each packed for generation. A model owns it, `sampled_weights()` of
/// model_parts.h gives it to a node; it knows nothing of training.
///
/// With one readable version there is one copy, which is packed anew: right when nothing is sampled between the update of the
/// weights and their publication, which the plan knows. With more there are as many copies, and the memory of the oldest is used
/// again. With none nobody samples, and nothing is packed.
///
/// Ranks may have the copies in common (nodes/models/sampling/common_copies.h): each packs a part of a version, and take() waits
/// until all have.
///
/// Ranks that sample together (models/layers/column_share.h) have a part of each version: this one packs that. The rank that
/// leads them has a SamplingLead.
///
/// at() may be called from any thread, also while a version is taken. Throws InternalError for a version that is not there.
class SampledWeights {
 public:
  /// Without versions. readable: how many there are beside each other. share: of each version what this rank has.
  SampledWeights(const models::ModelConfig& config, models::Precision precision, at::Device device, int64_t readable,
                 std::optional<CommonCopies> common = {}, const models::ColumnShare& share = {});

  /// Other ranks sample with this one, which leads them; null: none does. Set before anybody samples.
  SamplingLead* lead() const { return lead_.get(); }
  void set_lead(std::unique_ptr<SamplingLead> lead) { lead_ = std::move(lead); }

  const models::ColumnShare& share() const { return share_; }
  int64_t readable() const { return std::ssize(copies_); }

  const models::ModelConfig& config() const { return config_; }
  models::Precision precision() const { return precision_; }
  at::Device device() const { return device_; }

  /// The reference is valid until `readable` later versions were taken.
  const models::PackedWeights& at(int64_t version) const;

  /// Which version these are. Throws InternalError where it is none.
  int64_t version_of(const models::PackedWeights& weights) const;

  /// As at(), of a version that another rank has told of. Waits for: it to be taken. Ends when: it is, or give_up() was called,
  /// which it throws as a UserError, as take() does where it waits for other ranks.
  const models::PackedWeights& wait_for(int64_t version) const;
  void give_up();

  /// The newest version, whose memory is not taken while somebody holds this. A handle.
  struct Lease {
    std::shared_ptr<const models::PackedWeights> weights;
    int64_t version = -1;
  };
  Lease newest() const;

  /// Packs `live` as `version`, one more than the last unless all were forgotten. The oldest of the readable ones is gone from
  /// then on. Waits for: who holds its memory, and the other ranks where they have it in common. Ends when: they let go, and have
  /// come, or one of them is lost (UserError).
  void take(int64_t version, const models::Weights& live);

  /// Version 0 is what was packed elsewhere. Before any other, where one version is readable.
  void begin_with(models::PackedWeights&& packed);

  /// `optimizer` trains `live`, before anybody samples. On a device, where this rank alone has the versions, take() then copies
  /// what is trained and nothing else; and where one is readable and this rank makes all steps, these write its matrices, and
  /// take() copies the rest. Version 0 is packed anew for that.
  void be_trained_by(models::AdamW& optimizer, const models::Weights& live);

  /// Forgets all versions; the next may be any. Nobody samples meanwhile.
  void forget();

  /// Of all versions that were packed so far, as far as they are this rank's; and what of them is other ranks'. From any thread.
  int64_t bytes() const;
  int64_t bytes_of_others() const { return bytes_.load(std::memory_order_relaxed) - bytes(); }

 private:
  struct Copy {
    int64_t version = -1;  // -1: none, or being written
    models::PackedWeights weights;
    int64_t holders = 0;
    bool only_trained_differs = false;  // what it has is of the weights that are trained now
  };

  void pack(Copy& copy, const models::Weights& live);
  void have_steps_write(models::AdamW& optimizer, const models::Weights& live);

  Copy& slot_of(int64_t version) { return copies_[static_cast<size_t>(version) % copies_.size()]; }

  const models::ModelConfig config_;
  const models::Precision precision_;
  const at::Device device_;
  std::optional<CommonCopies> common_;
  const models::ColumnShare share_;
  std::unique_ptr<SamplingLead> lead_;
  mutable std::mutex mutex_;  // guards newest_, given_up_, and the versions and holders of copies_
  mutable std::condition_variable changed_;
  bool given_up_ = false;
  int64_t newest_ = -1;  // -1: none
  std::atomic<int64_t> bytes_ = 0;
  bool trained_on_device_ = false;
  mutable std::vector<Copy> copies_;  // a ring
};

}  // namespace sluice::nodes
