#include "text/tokenizer/tokenizer_file.h"

#include <unordered_set>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/tokenizer/tokenizer_model.h"

namespace sluice::text {
namespace {

using Tokens = std::vector<TokenizerFile::Token>;
using Ids = std::unordered_map<std::string, int64_t>;

constexpr size_t kMostUnusedIds = 1'000'000;  // bounds the memory that one absurd id can ask for

// Vocabulary and added tokens go through here: an id belongs to one token, and a token has one id.
void add_token(Tokens& tokens, Ids& ids, const std::string& text, int64_t id, size_t count, const JsonPart& place) {
  if (text.empty()) place.fail("the empty string cannot be a token");
  const size_t limit = count + kMostUnusedIds;
  if (id < 0 || static_cast<size_t>(id) >= limit) {
    place.fail("token " + sluice::quoted(text) + " has id " + std::to_string(id) + ", which is out of range for " +
               plural(static_cast<int64_t>(count), "token"));
  }
  const auto index = static_cast<size_t>(id);
  if (index >= tokens.size()) tokens.resize(index + 1);
  if (!tokens[index].text.empty()) {
    place.fail("id " + std::to_string(id) + " is given to both " + sluice::quoted(tokens[index].text) + " and " +
               sluice::quoted(text));
  }
  tokens[index] = {text, "", false};
  ids.emplace(text, id);
}

// Of Unigram: a token's id is its place. Of equal tokens the last one counts, as in the reference.
void read_pieces(const JsonPart& vocab, TokenizerFile& result) {
  for (const auto& piece : vocab.value()) {
    const std::string place = "[" + std::to_string(result.tokens.size()) + "]";
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number())
      vocab.fail("entry " + place + " must be [TOKEN, SCORE]");
    const auto& text = piece[0].get_ref<const std::string&>();
    if (text.empty()) vocab.fail("entry " + place + ": the empty string cannot be a token");
    result.ids[text] = static_cast<int64_t>(result.tokens.size());
    result.tokens.push_back({text, "", false});
  }
}

void read_vocabulary(const JsonPart& vocab, size_t count, TokenizerFile& result) {
  if (vocab.value().is_array()) return read_pieces(vocab, result);
  for (const auto& [text, id] : vocab.value().items()) {
    if (!id.is_number_integer()) vocab.fail("token " + sluice::quoted(text) + " has no integer id");
    const bool too_large = id.is_number_unsigned() && id.get<uint64_t>() > INT32_MAX;
    add_token(result.tokens, result.ids, text, too_large ? INT32_MAX : id.get<int64_t>(), count, vocab);
  }
}

AddedToken read_added_token(const JsonPart& part) {
  return {.content = part.at("content").string(),
          .id = part.at("id").integer(),
          .special = part.boolean_or("special", false),
          .left_strip = part.boolean_or("lstrip", false),
          .right_strip = part.boolean_or("rstrip", false),
          .single_word = part.boolean_or("single_word", false),
          .normalized = part.boolean_or("normalized", !part.boolean_or("special", false))};
}

void read_added_tokens(const JsonPart& list, size_t count, TokenizerFile& result) {
  if (list.is_null()) return;
  std::unordered_set<std::string> specials;
  for (const JsonPart& part : list.elements()) {
    AddedToken token = read_added_token(part);
    const auto known = result.ids.find(token.content);
    if (known == result.ids.end()) {
      add_token(result.tokens, result.ids, token.content, token.id, count, part);
    } else if (known->second != token.id) {
      part.fail("token " + sluice::quoted(token.content) + " has id " + std::to_string(token.id) + " here, but " +
                std::to_string(known->second) + " before");
    }
    auto& named = result.tokens[static_cast<size_t>(token.id)];
    named.special |= token.special;
    named.takes_space_behind |= token.right_strip;
    if (token.special) specials.insert(token.content);
    if (token.normalized) {
      bool is_first = true;
      named.text = token.content = result.normalizer.apply(token.content, is_first);
    }
    result.added.push_back(std::move(token));
  }
  for (auto& token : result.tokens) token.skipped = specials.contains(token.text);
}

}  // namespace

TokenizerFile read_tokenizer_file(const TokenizerJson& file) {
  const JsonPart root(file);
  const JsonPart model = root.at("model");
  const JsonPart added = root.at_or_null("added_tokens");
  refuse_other_models(model);

  TokenizerFile result{.normalizer = Normalizer(root.at_or_null("normalizer")),
                       .pre_tokenizer = PreTokenizer(root.at_or_null("pre_tokenizer")),
                       .decoder = Decoder(root.at_or_null("decoder"))};
  const size_t count = model.at("vocab").value().size() + added.value().size();
  read_vocabulary(model.at("vocab"), count, result);
  result.rules = read_model(model, result.ids, result.pre_tokenizer.is_byte_level());  // added tokens are no business of its
  read_added_tokens(added, count, result);
  for (auto& token : result.tokens) {
    if (!token.text.empty()) token.bytes = result.decoder.bytes_of(token.text);
  }
  result.frame = read_post_processor(root.at_or_null("post_processor"), result.tokens.size());
  return result;
}

}  // namespace sluice::text
