#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/contract/columns/column.h"

/// The columns that the builtin nodes exchange. Plugins use these and add their own.
namespace sluice::nodes::columns {

using engine::Column;
using engine::Extent;

inline constexpr Column<std::string> kPrompt{"prompt", Extent::kGroup};
inline constexpr Column<std::string> kLabel{"label", Extent::kGroup};  // the reference answer; may be empty

// The conversation that a chat template wrote the prompt from, as JSON: [{"role": "user", "content": "..."}, ...]. Such a prompt
// holds its special tokens. Empty: it was a text. A source writes the column if it reads conversations.
inline constexpr Column<std::string> kMessages{"messages", Extent::kGroup};

inline constexpr Column<int64_t> kTokens{"tokens", Extent::kToken};
inline constexpr Column<std::string> kResponse{"response", Extent::kSample};
inline constexpr Column<uint8_t> kFinish{"finish", Extent::kSample};  // why the sample ended
// Where the routers of a mixture sent the sample's tokens, but for its last: as bytes (models/layers/feed_forward/routes.h).
inline constexpr Column<std::string> kRoutes{"routes", Extent::kSample};

inline constexpr Column<float> kScore{"score", Extent::kSample};
inline constexpr Column<float> kMargin{"margin", Extent::kGroup};  // how much better its best sample is, on that scale
inline constexpr Column<float> kEnvironmentScore{"environment_score", Extent::kSample};  // the sum of an environment's rewards

// The likeliest response to the prompt, as a baseline for those that were sampled, and its score.
inline constexpr Column<std::string> kBaselineResponse{"baseline_response", Extent::kGroup};
inline constexpr Column<float> kBaselineScore{"baseline_score", Extent::kGroup};

// How much an action counts in losses and statistics; 0: not at all, whatever its other columns hold. Without it each counts 1.
inline constexpr Column<float> kMask{"mask", Extent::kAction};

// Natural log-probabilities of the sampled tokens: under the weights that are asked, under those (and the temperature) that
// sampled them, under a frozen model, and under the weights before the iteration's first optimizer step.
inline constexpr Column<float> kLogprobs{"logprobs", Extent::kAction};
inline constexpr Column<float> kRolloutLogprobs{"rollout_logprobs", Extent::kAction};
inline constexpr Column<float> kReferenceLogprobs{"reference_logprobs", Extent::kAction};
inline constexpr Column<float> kOldLogprobs{"old_logprobs", Extent::kAction};

inline constexpr Column<int64_t> kTokenVersions{"token_versions", Extent::kAction};  // of the weights that sampled the token

inline constexpr Column<float> kValues{"values", Extent::kAction};             // expected return before the action
inline constexpr Column<float> kKl{"kl", Extent::kAction};                     // an estimate of the divergence from the reference
inline constexpr Column<float> kStepRewards{"step_rewards", Extent::kAction};  // of a step, where it ends; NaN where none does
inline constexpr Column<float> kTokenRewards{"token_rewards", Extent::kAction};
inline constexpr Column<float> kAdvantages{"advantages", Extent::kAction};
inline constexpr Column<float> kReturns{"returns", Extent::kAction};

/// All of the above, for commands and nodes that take columns by name.
inline std::vector<engine::ColumnSpec> standard() {
  return {kPrompt.spec(),
          kLabel.spec(),
          kMessages.spec(),
          kTokens.spec(),
          kResponse.spec(),
          kFinish.spec(),
          kRoutes.spec(),
          kScore.spec(),
          kMargin.spec(),
          kEnvironmentScore.spec(),
          kBaselineResponse.spec(),
          kBaselineScore.spec(),
          kMask.spec(),
          kLogprobs.spec(),
          kRolloutLogprobs.spec(),
          kReferenceLogprobs.spec(),
          kOldLogprobs.spec(),
          kTokenVersions.spec(),
          kValues.spec(),
          kKl.spec(),
          kStepRewards.spec(),
          kTokenRewards.spec(),
          kAdvantages.spec(),
          kReturns.spec()};
}

}  // namespace sluice::nodes::columns
