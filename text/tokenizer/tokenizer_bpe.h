#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "text/tokenizer/bpe.h"

namespace sluice::text {

class JsonPart;

/// Throws UserError when a byte-pair encoding "model" has settings that are not supported.
void refuse_unsupported_bpe(const JsonPart& model);

/// The rules of such a model. `ids`: its vocabulary. `is_byte_level`: the vocabulary is written in the byte-level alphabet.
/// Throws UserError for merges that are malformed or name unknown tokens, and for an unknown unk_token.
BpeRules read_bpe(const JsonPart& model, const std::unordered_map<std::string, int64_t>& ids, bool is_byte_level);

}  // namespace sluice::text
