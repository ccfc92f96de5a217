#pragma once

namespace sluice::models {

/// What a model says of a token: log-probabilities of the next one, one number, or both from one trunk.
enum class Head { kLanguageModel, kValue, kPolicyAndValue };

constexpr bool has_language_head(Head head) { return head != Head::kValue; }
constexpr bool has_value_head(Head head) { return head != Head::kLanguageModel; }

}  // namespace sluice::models
