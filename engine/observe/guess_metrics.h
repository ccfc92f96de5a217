#pragma once

namespace sluice::engine::metrics {

// What a rollout records that guesses tokens before it samples them: sums of an iteration.
inline constexpr const char* kGuessedSteps = "engine/guessed_steps";    // of samples, in which tokens may be guessed
inline constexpr const char* kDraftedTokens = "engine/drafted_tokens";  // guessed in them
inline constexpr const char* kKeptDrafts = "engine/kept_drafts";        // of these, sampled

}  // namespace sluice::engine::metrics
