#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "engine/contract/spec/spec.h"

namespace sluice::dsl {

/// TOML 1.0 `text` as a tree of values that know where they were written, keys in the order of the text.
///
/// `source` is what spans point into: `text` itself, or a longer text that begins with it. Columns count code points from 1; a
/// span that goes over several lines is clipped to its first. A table written with a header has the whole header as its place, a
/// table made by a dotted key has that key. `base` is copied into each value.
///
/// Adds a problem and returns nothing when `text` is not TOML (the first error only), not UTF-8, or nests deeper than 32 values
/// or 32 dotted keys. A date is reported and kept as a string, so that whatever else is wrong can be found in the same pass.
std::optional<engine::Table> parse_toml(std::string_view text, const std::shared_ptr<const SourceText>& source,
                                        const std::string& base, Problems& problems);

/// `text` without a byte order mark.
std::string without_byte_order_mark(std::string text);

}  // namespace sluice::dsl
