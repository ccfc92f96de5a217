#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/token_model.h"
#include "text/tokenizer/tokenizer_added.h"
#include "text/tokenizer/tokenizer_decoder.h"
#include "text/tokenizer/tokenizer_normalizer.h"
#include "text/tokenizer/tokenizer_pretokenizer.h"
#include "text/tokenizer/tokenizer_template.h"

namespace sluice::text {

struct TokenizerJson;

/// What a tokenizer.json says, checked: ids are unique and in range, merges name known tokens.
struct TokenizerFile {
  struct Token {
    std::string text;   // as the vocabulary spells it, or as it is looked for in text; empty where no token has the id
    std::string bytes;  // what it decodes to in the midst of a text
    bool special = false;
    bool takes_space_behind = false;
    bool skipped =
        false;  // when special tokens are skipped; in the reference not if normalisation spells a special token otherwise
  };

  std::vector<Token> tokens;                     // [id]
  std::unordered_map<std::string, int64_t> ids;  // [text]
  TokenModel::Rules rules;
  std::vector<AddedToken> added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  TextFrame frame;
};

/// Throws UserError naming file and key for whatever is missing, of the wrong type, contradictory or not supported.
/// "truncation" and "padding" are settings of one past caller and are not read, as in the reference's own users.
TokenizerFile read_tokenizer_file(const TokenizerJson& file);

}  // namespace sluice::text
