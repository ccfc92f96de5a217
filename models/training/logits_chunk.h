#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::models {

/// Actions whose logits exist at a time: about 32 MB of them, however large the vocabulary is.
constexpr int64_t logits_chunk(int64_t vocab_size) {
  constexpr int64_t kLogits = int64_t{1} << 23;
  return std::max<int64_t>(16, kLogits / vocab_size);
}

}  // namespace sluice::models
