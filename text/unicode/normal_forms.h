#pragma once

#include <string>
#include <string_view>

namespace sluice::text {

/// Unicode's normalisation forms (UAX 15).
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// Well-formed UTF-8 `text` in `form`. Takes O(n log n) whatever the text holds; text that is in form C already costs one look a
/// character. Characters younger than the tables of the `tokenizers` package stay as they are.
std::string to_normal_form(std::string_view text, NormalForm form);

}  // namespace sluice::text
