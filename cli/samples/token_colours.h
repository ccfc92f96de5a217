#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/samples/recorded_samples.h"

namespace sluice::cli {

/// What the tokens of a sample may be coloured by: an action column, or two of which it is made.
struct TokenMeasure {
  const char* word;                              // as the command line has it
  std::vector<std::vector<std::string>> fields;  // any of these, each with all of its fields; "tokens" is needed besides
  const char* legend;                            // what the colours say
};

/// advantage, kl, probability.
const std::vector<TokenMeasure>& token_measures();

/// What was sampled, token by token, with what each is measured to be; nothing: the sample does not have what it takes.
std::optional<NumberedTokens> measured_tokens(const Json& sample, const TokenMeasure& measure, const text::Tokenizer& tokenizer);

/// A text in one background, of the 256 that terminals have; 0: none.
struct ColouredText {
  std::string text;
  int background = 0;
};

/// Likewise, with colours in place of numbers.
std::optional<std::vector<ColouredText>> coloured_tokens(const Json& sample, const TokenMeasure& measure,
                                                         const text::Tokenizer& tokenizer);

}  // namespace sluice::cli
