#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/config/precision.h"
#include "models/layers/decode_sequence.h"

namespace sluice::nodes {

/// What the rank that leads a generation says to those that make its steps with it. A value, which goes as text; the sequences of
/// a step come after it.
struct SamplingCommand {
  enum class Kind {
    kOpen,  // another generation of the model: a part of its KV cache
    kCopyBlock,
    kStep,
    kEnd,
  };

  Kind kind = Kind::kEnd;
  int64_t generation = 0;  // counted from 0, as they are opened
  models::Precision precision = models::Precision::kFloat32;
  int64_t block_size = 0, blocks = 0;  // of kOpen
  int32_t from = 0, to = 0;            // of kCopyBlock
  int64_t version = 0, numbers = 0;    // of kStep: of the weights; how many numbers its sequences are

  std::string to_text() const;

  /// Throws InternalError on what to_text() does not write.
  static SamplingCommand from_text(const std::string& text);
};

/// The sequences of a step as numbers, and back: views into `numbers` and `blocks`, which is filled.
std::vector<int64_t> numbers_of(std::span<const models::DecodeSequence> sequences);
std::vector<models::DecodeSequence> sequences_of(std::span<const int64_t> numbers, std::vector<int32_t>& blocks);

}  // namespace sluice::nodes
