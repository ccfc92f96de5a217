#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::text {

/// The end of the character that a reader sees at `begin` < text.size(): an extended grapheme cluster (Unicode, UAX 29), which
/// may be several code points: a letter and its accents, a syllable of Hangul, a family of emoji. `text` is well-formed UTF-8.
/// The classes of characters are those of the `tokenizers` package.
size_t grapheme_end(std::string_view text, size_t begin);

}  // namespace sluice::text
