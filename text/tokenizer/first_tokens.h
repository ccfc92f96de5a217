#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace sluice::text {

/// The first `most` tokens of a text, or all. Of a long text no more is read than they may take, so that time and memory follow
/// `most`: where no word is longer than what `most` tokens take, they are those of the whole text. Throws like encode().
std::vector<int64_t> first_tokens(const Tokenizer& tokenizer, std::string_view utf8, size_t most);

}  // namespace sluice::text
