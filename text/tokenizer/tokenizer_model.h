#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "text/tokenizer/token_model.h"

namespace sluice::text {

class JsonPart;

/// Throws UserError when the "model" of a tokenizer.json is not one of ours, has settings that are not supported, or a
/// vocabulary that is no list of tokens and scores (Unigram) or object of tokens and ids (the others).
void refuse_other_models(const JsonPart& model);

/// The rules of a "model". `ids`: its vocabulary. `is_byte_level`: the pre-tokenizer writes words in the byte-level alphabet.
/// Throws UserError for what is malformed, and for an unknown token that the vocabulary does not have.
TokenModel::Rules read_model(const JsonPart& model, const std::unordered_map<std::string, int64_t>& ids, bool is_byte_level);

}  // namespace sluice::text
