#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "cli/samples/token_colours.h"

namespace sluice::cli {

/// How samples are printed.
struct SampleStyle {
  bool escaped = false;                   // to a terminal: what could steer it is written as an escape
  bool colour = false;                    // only with `escaped`
  const TokenMeasure* measure = nullptr;  // what tokens are coloured by; null: nothing
  const text::Tokenizer* tokenizer = nullptr;
};

/// One sample: a line with where it is from and its numbers, then each of its texts under its name, whole.
///
///   iteration 3, group 4, sample 1   score 1   length 2 characters
///     prompt    12+34=
///     response  46
///
/// Lists are not shown, but as the colours of tokens.
std::string sample_text(const Json& sample, const SampleStyle& style);

}  // namespace sluice::cli
