#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"

namespace sluice::models {

/// How the next token is drawn: penalties change logits, the temperature divides them, top_k, top_p and min_p leave only the
/// likeliest.
struct SamplingOptions {
  double temperature = 1.0;  // >= 0; 0 takes the likeliest token
  int64_t top_k = 0;         // keep the k likeliest; 0 keeps all
  double top_p = 1.0;        // then keep the fewest likeliest whose share of what is left reaches top_p; 1 keeps all
  double min_p = 0.0;        // of those keep tokens at least min_p times as likely as the likeliest; 0 keeps all

  /// Of a token that occurs in the prompt or after it: a positive logit is divided by it, a negative one multiplied (Keskar et
  /// al. 2019, "CTRL", section 4.1). Above 0; 1 changes nothing.
  double repetition_penalty = 1.0;

  /// Taken off the logit of a token that occurs after the prompt: once, and once for each time that it does.
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;

  bool penalizes() const { return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0; }
  bool truncates() const { return top_k != 0 || top_p != 1 || min_p != 0; }
};

/// Throws UserError naming the option that is out of range.
void check_range(const SamplingOptions& options);

/// One token that is to be drawn.
struct TokenDraw {
  uint64_t id = 0;                            // of the sample, for messages
  int64_t row = 0;                            // of the step's logits; several draws may be from one row
  double uniform = 0;                         // in [0, 1): which token it is; without effect where the likeliest is taken
  bool greedy = false;                        // the likeliest token, whatever the options say
  std::span<const int64_t> prompt, response;  // what it follows, for the penalties: token ids in the vocabulary
};

struct SampledToken {
  int64_t id = 0;

  /// Natural log of the token's probability in softmax(logits / temperature) over the whole vocabulary, the logits as the model
  /// gives them: the temperature counts; penalties, top_k, top_p and min_p do not. That is what the training side computes for
  /// the same token at the same temperature. With temperature 0 it is the log-probability at temperature 1.
  float logprob = 0;
};

/// What is thrown where the logits of a sample hold a NaN or an infinity.
UserError logits_are_not_finite(uint64_t sample);

}  // namespace sluice::models
