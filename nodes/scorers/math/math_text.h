#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::nodes {

/// What stands in the braces of the last \boxed{...} or \fbox{...}; of a `\boxed 72` without braces the rest of the line up to a
/// dollar sign. Nothing when there is none, or when its braces do not close: the response was cut off. A view into `text`.
std::optional<std::string_view> last_boxed(std::string_view text);

/// The line after the last ####, or the next one that is not blank. Nothing when there is none.
std::optional<std::string_view> after_hashes(std::string_view text);

/// The same text with what LaTeX and Unicode have several ways for written in one, so that numbers can be read from it: \dfrac
/// and \tfrac are \frac; \times, \cdot, and their Unicode forms are *; \text{...} and its like lose the command; spacing commands
/// go; a minus sign is -, any currency sign $, a degree sign stays; \approx is =; the signs of one half, pi, roots, plus or minus
/// and relations are the commands of LaTeX.
std::string plain_math(std::string_view text);

/// The first word of `text` where it is a command of LaTeX (`\frac`), else nothing.
std::string_view command_at(std::string_view text);

/// Whether that is a command which is a value, or makes one of what follows (\pi, \sqrt): a number beside it is a factor.
bool is_value_command(std::string_view text);

/// The {...} at the front of a text.
struct Braces {
  size_t length = 0;  // bytes, with both braces; 0: there is none; all of the text where it does not close
  bool closed = false;
};

/// \{ and \} are no braces.
Braces braces_at(std::string_view text);

}  // namespace sluice::nodes
