#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/random.h"

namespace sluice::models {

/// The ids of a prompt, which the samples of a group share: copying one copies a pointer. Never changed.
class PromptTokens {
 public:
  PromptTokens() = default;
  PromptTokens(std::vector<int64_t> ids) : ids_(std::make_shared<const std::vector<int64_t>>(std::move(ids))) {}

  std::span<const int64_t> ids() const { return ids_ ? std::span<const int64_t>(*ids_) : std::span<const int64_t>(); }
  int64_t size() const { return ids_ ? static_cast<int64_t>(ids_->size()) : 0; }
  bool same_object(const PromptTokens& other) const { return ids_ == other.ids_; }

 private:
  std::shared_ptr<const std::vector<int64_t>> ids_;
};

struct SampleRequest {
  uint64_t id = 0;             // the caller's; not interpreted
  PromptTokens prompt;         // at least one token
  int64_t max_new_tokens = 0;  // at least 1
  RandomStream stream;         // of this sample alone
  bool greedy = false;         // the likeliest token each time, whatever the options say
};

enum class FinishReason : uint8_t { kEndOfSequence, kLength, kStopped };

/// A run of tokens, [begin, end).
struct TokenRun {
  int64_t begin = 0, end = 0;
};

struct SampleResult {
  uint64_t id = 0;
  std::vector<int64_t> tokens;  // all after the prompt, with the end-of-sequence id when that was sampled
  std::vector<float> logprobs;  // of each sampled token, see SampledToken (sampling.h)
  std::vector<TokenRun> given;  // of `tokens`: those that resume() brought; the others were sampled
  std::string routes;  // of prompt and tokens but the last, which nothing was sampled behind, one after the other: routes.h.
                       // The last layer is open where no sampled token follows. Empty unless they are kept
  FinishReason finish = FinishReason::kLength;
};

}  // namespace sluice::models
