#pragma once

#include <string>
#include <string_view>

namespace sluice::text {

/// `pattern` with its \p{...}, \P{...}, \w, \W, \d and \D spelled out as classes of the code points that the `tokenizers` package
/// means by them, so that it matches the same whatever Unicode the installed Oniguruma knows. Covers L, Lu, Ll, Lt, Lm, Lo, M, N,
/// Nd, P and S; other properties stay as they are, and so does a pattern of more than 32 properties.
std::string with_fixed_properties(std::string_view pattern);

}  // namespace sluice::text
