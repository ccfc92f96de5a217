#pragma once

#include <cstdint>
#include <vector>

namespace sluice::text {

class JsonPart;

/// The special tokens that belong around a text.
struct TextFrame {
  std::vector<int64_t> prefix;
  std::vector<int64_t> suffix;
};

/// The "post_processor" of a tokenizer.json; may be null. `ids`: one more than the largest id. Throws UserError for an unknown
/// type, an id that no token has, or a template that does not hold the text exactly once.
TextFrame read_post_processor(const JsonPart& part, size_t ids);

}  // namespace sluice::text
