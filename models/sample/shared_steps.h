#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "models/config/precision.h"
#include "models/layers/column_share.h"
#include "models/layers/decode_sequence.h"
#include "models/sample/packed_weights.h"

namespace sluice::models {

/// Other ranks that make the steps of a generation together with this one, which leads: they have their parts of the weights and
/// of the KV cache, and are told what there is to do. Belongs to the thread that generates. What goes wrong on one of them is
/// thrown by the next call that needs it.
class SharedSteps {
 public:
  virtual ~SharedSteps() = default;

  /// What this rank has; its exchange lives as long as this.
  virtual ColumnShare share() const = 0;

  /// They make their parts of a KV cache. Once, before what follows.
  virtual void open(Precision precision, int64_t block_size, int64_t blocks) = 0;

  /// As GenerationBackend has it.
  virtual void copy_block(int32_t from, int32_t to) = 0;

  /// They make this step, with their parts of the version that `weights` is a part of. While the lock is held, which is until
  /// this rank is done with the step, no other generation of the model makes one.
  virtual std::unique_lock<std::mutex> begin(const PackedWeights& weights, std::span<const DecodeSequence> sequences) = 0;
};

}  // namespace sluice::models
