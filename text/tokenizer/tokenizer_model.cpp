#include "text/tokenizer/tokenizer_model.h"

#include "base/text/strings.h"
#include "text/tokenizer/reference_number.h"
#include "text/tokenizer/tokenizer_bpe.h"
#include "text/tokenizer/tokenizer_json.h"

namespace sluice::text {
namespace {

using VocabularyIds = std::unordered_map<std::string, int64_t>;

// Older files do not say what they are.
std::string model_type(const JsonPart& model) {
  if (model.has("type")) return model.type();
  if (model.has("merges") || !model.has("vocab")) return "BPE";
  if (model.at("vocab").value().is_array()) return "Unigram";
  if (model.has("max_input_chars_per_word")) return "WordPiece";
  return model.has("unk_token") ? "WordLevel" : "BPE";
}

// The pieces have been read as vocabulary before: each is a token and a number.
UnigramRules read_unigram(const JsonPart& model) {
  const JsonPart vocab = model.at("vocab");
  const int64_t unknown = model.at("unk_id").integer();
  if (unknown < 0 || static_cast<size_t>(unknown) >= vocab.value().size())
    model.at("unk_id").fail("no token has id " + std::to_string(unknown));
  UnigramRules rules{.unknown = static_cast<int32_t>(unknown),
                     .byte_fallback = model.boolean_or("byte_fallback", false),
                     .single_precision = model.boolean_or("single_precision", false)};  // no tokenizer.json says so
  for (const auto& piece : vocab.value()) {
    const auto score = piece[1].get<double>();
    rules.pieces.emplace_back(piece[0].get<std::string>(), rules.single_precision ? score : as_reference_reads(score));
  }
  return rules;
}

int32_t read_unknown(const JsonPart& model, const VocabularyIds& ids) {
  const JsonPart token = model.at("unk_token");
  const auto unknown = ids.find(token.string());
  if (unknown == ids.end()) token.fail("token " + sluice::quoted(token.string()) + " is not in model.vocab");
  return static_cast<int32_t>(unknown->second);
}

WordLevelRules read_word_level(const JsonPart& model, const VocabularyIds& ids) {
  WordLevelRules rules{.tokens = {}, .unknown = read_unknown(model, ids)};
  for (const auto& [text, id] : ids) rules.tokens.emplace_back(text, static_cast<int32_t>(id));
  return rules;
}

WordPieceRules read_word_piece(const JsonPart& model, const VocabularyIds& ids) {
  const JsonPart most = model.at("max_input_chars_per_word");
  if (most.integer() < 0) most.fail("a number of characters was expected here");
  WordPieceRules rules{.continuing_prefix = model.at("continuing_subword_prefix").string(),
                       .unknown = read_unknown(model, ids),
                       .most_characters = static_cast<size_t>(most.integer())};
  for (const auto& [text, id] : ids) rules.tokens.emplace_back(text, static_cast<int32_t>(id));
  return rules;
}

}  // namespace

void refuse_other_models(const JsonPart& model) {
  const std::string type = model_type(model);
  if (type != "BPE" && type != "Unigram" && type != "WordPiece" && type != "WordLevel")
    model.fail_unsupported("model type " + sluice::quoted(type), "BPE, Unigram, WordPiece, WordLevel");
  if (type == "BPE") refuse_unsupported_bpe(model);
  const JsonPart vocab = model.at("vocab");
  const bool is_unigram = type == "Unigram";
  if (is_unigram && !vocab.value().is_array()) vocab.fail("a list of [TOKEN, SCORE] was expected here");
  if (!is_unigram && !vocab.value().is_object()) vocab.fail("an object of token to id was expected here");
}

TokenModel::Rules read_model(const JsonPart& model, const VocabularyIds& ids, bool is_byte_level) {
  const std::string type = model_type(model);
  if (type == "BPE") return read_bpe(model, ids, is_byte_level);
  if (is_byte_level) model.fail_unsupported("a " + type + " model after ByteLevel", "BPE after it");
  if (type == "WordPiece") return read_word_piece(model, ids);
  if (type == "WordLevel") return read_word_level(model, ids);
  return read_unigram(model);
}

}  // namespace sluice::text
