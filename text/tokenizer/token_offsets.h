#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace sluice::text {

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// For each of `ids`, which must be the tokens of `text` without special tokens added around it: 1 if it holds a byte of one of
/// `ranges`. Gives what `transformers` calls the assistant tokens mask, but counts all tokens of a character.
/// White space that a special token takes in belongs to no token.
///
/// Where the tokenizer changes the text (a normal form, lower case), places are known up to the next special token only; nothing
/// is returned if a range begins or ends between the first change and it, nor if the tokens do not belong to the text.
std::optional<std::vector<uint8_t>> tokens_in_ranges(const Tokenizer& tokenizer, std::string_view text,
                                                     std::span<const int64_t> ids, std::span<const ByteRange> ranges);

}  // namespace sluice::text
