#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/world/common_memory.h"
#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/weights.h"
#include "models/sample/packed_weights.h"
#include "nodes/models/gradients/common_meeting.h"

namespace sluice::nodes {

/// Packed copies of a model's weights that ranks have in common which sample from it: each packs some layers, and samples from
/// all. One thread of a rank; the ranks do the same in the same order. Failure: of CommonMemory and CommonMeeting.
class CommonCopies {
 public:
  /// `memory` outlives this.
  CommonCopies(std::string model, engine::CommonMemory& memory);

  /// Gets the memory of so many copies. Waits for: the other ranks to ask. Once, before the first copy.
  void prepare(const models::ModelConfig& config, models::Precision precision, int64_t copies);

  /// `to` becomes `live`, in the memory of this copy. Waits for: all ranks to let go of what was there, and to pack their part.
  void pack(const models::Weights& live, models::PackedWeights& to, int64_t copy);

  /// Who waits for others here stops (UserError). After prepare(), from any thread.
  void give_up();

  /// What of so many bytes is this rank's.
  int64_t part_of(int64_t bytes) const;

 private:
  bool is_mine(int64_t part) const { return part % memory_->ranks().count() == memory_->ranks().place; }
  void pack_first(const models::Weights& live, models::PackedWeights& to, const std::shared_ptr<std::byte>& memory) const;
  void pack_again(const models::Weights& live, models::PackedWeights& to) const;

  std::string model_;
  engine::CommonMemory* memory_;
  std::unique_ptr<CommonMeeting> meeting_;
  std::vector<std::shared_ptr<std::byte>> copies_;
  int64_t bytes_ = 0;  // of each
};

}  // namespace sluice::nodes
