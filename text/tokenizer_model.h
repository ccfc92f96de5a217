#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "text/bpe.h"

namespace sluice::text {

class JsonPart;

/// Throws UserError when the "model" of a tokenizer.json is not byte-pair encoding, or has settings that are not supported.
void refuse_other_models(const JsonPart& model);

/// The rules of such a model. `ids`: its vocabulary. `is_byte_level`: the vocabulary is written in the byte-level alphabet.
/// Throws UserError for merges that are malformed or name unknown tokens, and for an unknown unk_token.
BpeRules read_model(const JsonPart& model, const std::unordered_map<std::string, int64_t>& ids, bool is_byte_level);

}  // namespace sluice::text
