#pragma once

#include <cstdint>
#include <vector>

#include "base/numbers/random.h"
#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

namespace sluice::models {

/// What tests of GenerationEngine ask for, of a model with reference::small_config(): room for four samples, and prompts that
/// follow from an id.
inline constexpr GenerationLimits kLimits{.max_running_samples = 4, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 40};

inline std::vector<int64_t> prompt_of(uint64_t id, int64_t length) {
  const int64_t vocabulary = reference::small_config().vocab_size;
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < length; ++i) prompt.push_back((static_cast<int64_t>(id) * 13 + i * 5) % vocabulary);
  return prompt;
}

inline SampleRequest request_of(uint64_t id, int64_t prompt_length, int64_t max_new_tokens) {
  return {.id = id,
          .prompt = prompt_of(id, prompt_length),
          .max_new_tokens = max_new_tokens,
          .stream = RandomStream(9, 1, 0, static_cast<uint32_t>(id))};
}

}  // namespace sluice::models
