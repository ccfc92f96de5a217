#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace sluice::nodes {

/// The tokens of a text that end a step of it: those with which a `separator` (not empty) is complete, and the last token, which
/// ends what follows the last separator. Steps of nothing but blanks and special tokens do not count, so of "a\n\nb<eos>" the
/// first "\n" ends a step and "<eos>" does. A special token is a separator by its name alone. Ascending places in `ids`.
std::vector<size_t> step_ends(const text::Tokenizer& tokenizer, std::span<const int64_t> ids, const std::string& separator);

}  // namespace sluice::nodes
