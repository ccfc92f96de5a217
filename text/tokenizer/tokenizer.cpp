#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "text/tokenizer/sentencepiece_tokenizer.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr size_t kLongestText = size_t{512} << 20;  // positions are 32 bits wide, and a blank may become four bytes

void check_length(std::string_view text) {
  if (text.size() <= kLongestText) return;
  throw UserError("a text of " + human_bytes(text.size()) + " is too long to be tokenized at once",
                  "cut it into pieces below 512 MiB");
}

std::vector<AddedToken> select(const std::vector<AddedToken>& tokens, bool normalized) {
  std::vector<AddedToken> selected;
  std::ranges::copy_if(tokens, std::back_inserter(selected), [=](const auto& token) { return token.normalized == normalized; });
  return selected;
}

// "eos_token" is a string or, in older files, an object with its content.
std::optional<std::string> token_named(const JsonPart& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  const JsonPart part = config.at(key);
  if (!part.is_string() && !part.is_object()) part.fail("a token was expected here: a text, or an object with its content");
  return part.is_string() ? part.string() : part.at("content").string();
}

constexpr const char* kSave = "transformers writes it once: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";

// Where there is no `tokenizer`, a tokenizer.json, but the files that transformers can make one of.
void refuse_older_files(const std::filesystem::path& tokenizer) {
  if (is_there(tokenizer)) return;
  for (const char* older : {"vocab.json", "vocab.txt"}) {
    if (!is_there(tokenizer.parent_path() / older)) continue;
    throw UserError("cannot read " + tokenizer.string() + ": there is only " + older, kSave);
  }
}

void require_token(const Tokenizer& tokenizer, const std::string& token, const JsonPart& by, const std::string& file) {
  if (tokenizer.token_to_id(token)) return;
  by.fail("token " + sluice::quoted(token) + " is not in " + file + ", so its text would be cut into others", kSave);
}

// Tokens that files beside `file` add, as transformers reads them: those of added_tokens.json where tokenizer_config.json is not
// there or has no list of its own.
void require_added_tokens(const Tokenizer& tokenizer, const JsonPart& config, const std::filesystem::path& file) {
  if (config.has("added_tokens_decoder")) {
    const JsonPart tokens = config.at("added_tokens_decoder");
    if (!tokens.is_object()) tokens.fail("an object of id to token was expected here");
    for (const auto& [id, token] : tokens.value().items()) {
      const JsonPart content = tokens.at(id.c_str()).at("content");
      require_token(tokenizer, content.string(), content, file.string());
    }
    return;
  }
  const auto older = file.parent_path() / "added_tokens.json";
  if (!is_there(older)) return;
  const TokenizerJson added = TokenizerJson::read(older);
  const JsonPart tokens(added);
  if (!tokens.is_object()) tokens.fail("an object of token to id was expected here");
  for (const auto& [token, id] : tokens.value().items()) require_token(tokenizer, token, tokens.at(token.c_str()), file.string());
}

}  // namespace

Tokenizer::Tokenizer(TokenizerFile file, std::string name)
    : name_(std::move(name)),
      tokens_(std::move(file.tokens)),
      ids_(std::move(file.ids)),
      normalizer_(std::move(file.normalizer)),
      pre_tokenizer_(std::move(file.pre_tokenizer)),
      verbatim_tokens_(select(file.added, false)),
      normalized_tokens_(select(file.added, true)),
      model_(std::move(file.rules)),
      uncovered_bytes_(model_.dropped_bytes()),
      decoder_(std::move(file.decoder)),
      frame_(std::move(file.frame)) {}

std::filesystem::path tokenizer_file_in(const std::filesystem::path& folder_or_file) {
  if (!is_folder(folder_or_file)) return folder_or_file;
  const auto json = folder_or_file / "tokenizer.json";
  return is_there(json) ? json : sentencepiece_model_in(folder_or_file).value_or(json);
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder_or_file) {
  const auto path = tokenizer_file_in(folder_or_file);
  refuse_older_files(path);
  const bool is_json = path.extension() != ".model";
  Tokenizer tokenizer(read_tokenizer_file(is_json ? TokenizerJson::read(path) : tokenizer_of_sentencepiece(path)), path.string());
  const auto config_path = path.parent_path() / "tokenizer_config.json";
  const TokenizerJson config_file =
      is_there(config_path) ? TokenizerJson::read(config_path) : TokenizerJson{config_path.string(), nlohmann::json::object()};
  const JsonPart config(config_file);
  require_added_tokens(tokenizer, config, path);
  tokenizer.read_config(config);
  return tokenizer;
}

void Tokenizer::read_config(const JsonPart& config) {
  const auto token = token_named(config, "eos_token");
  if (!token) return;
  end_of_sequence_ = token_to_id(*token);
  if (!end_of_sequence_) config.at("eos_token").fail("token " + sluice::quoted(*token) + " is not in " + name_);
}

std::vector<int64_t> Tokenizer::encode(std::string_view utf8, bool add_special) const {
  Workspace workspace;
  return encode(utf8, add_special, workspace);
}

std::vector<int64_t> Tokenizer::encode(std::string_view utf8, bool add_special, Workspace& workspace) const {
  check_length(utf8);
  std::string replaced;
  if (!is_utf8(utf8)) utf8 = replaced = replace_invalid_utf8(utf8);

  std::vector<int64_t> ids;
  if (add_special) ids = frame_.prefix;
  for (const auto& [text, token] : verbatim_tokens_.split(utf8)) {
    if (token) {
      ids.push_back(token->id);
    } else {
      encode_text({text, text.data() == utf8.data()}, workspace, ids);
    }
  }
  if (add_special) ids.insert(ids.end(), frame_.suffix.begin(), frame_.suffix.end());
  return ids;
}

void Tokenizer::encode_text(Piece piece, Workspace& workspace, std::vector<int64_t>& ids) const {
  std::string changed;
  if (!normalizer_.changes_nothing()) piece.text = changed = normalizer_.apply(piece.text, piece.is_first);
  check_length(piece.text);
  for (const auto& [text, token] : normalized_tokens_.split(piece.text)) {
    if (token) {
      ids.push_back(token->id);
    } else {
      const Piece part{text, piece.is_first && text.data() == piece.text.data()};
      pre_tokenizer_.for_each_word(part, [&](std::string_view word) { model_.encode(word, workspace, ids); });
    }
  }
}

const TokenizerFile::Token* Tokenizer::find(int64_t id) const {
  const bool known = id >= 0 && static_cast<size_t>(id) < tokens_.size() && !tokens_[static_cast<size_t>(id)].text.empty();
  return known ? &tokens_[static_cast<size_t>(id)] : nullptr;
}

const TokenizerFile::Token* Tokenizer::find_decoded(int64_t id, bool skip_special) const {
  const auto* token = find(id);
  return token && !(skip_special && token->skipped) ? token : nullptr;
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  std::string text;
  if (decoder_.is_byte_level()) {
    for (const int64_t id : ids) {
      if (const auto* token = find_decoded(id, skip_special)) text += token->bytes;
    }
    return is_utf8(text) ? text : replace_invalid_utf8(text);
  }
  Decoder::Run run(decoder_);
  for (const int64_t id : ids) {
    if (const auto* token = find_decoded(id, skip_special)) run.token(token->text, text);
  }
  run.finish(text);
  return text;
}

std::optional<int64_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> Tokenizer::id_to_token(int64_t id) const {
  const auto* token = find(id);
  return token ? std::optional(token->text) : std::nullopt;
}

bool Tokenizer::is_special(int64_t id) const {
  const auto* token = find(id);
  return token && token->special;
}

bool Tokenizer::takes_space_behind(int64_t id) const {
  const auto* token = find(id);
  return token && token->takes_space_behind;
}

std::string_view Tokenizer::token_bytes(int64_t id) const {
  const auto* token = find(id);
  return token ? std::string_view(token->bytes) : std::string_view();
}

}  // namespace sluice::text
