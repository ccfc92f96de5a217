#include "text/tokenizer.h"

#include <deque>

#include "base/error.h"
#include "base/strings.h"
#include "text/byte_level.h"

namespace sluice::text {
namespace {

constexpr size_t kLongestText = size_t{512} << 20;  // positions are 32 bits wide, and normalisation may triple a text

std::vector<AddedToken> select(const std::vector<AddedToken>& tokens, bool normalized, const Normalizer& normalizer) {
  std::vector<AddedToken> selected;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    selected.push_back(token);
    if (normalized) selected.back().content = normalizer.apply(token.content);
  }
  return selected;
}

std::string uncovered(const BpeRules& rules) {
  std::string bytes;
  for (size_t byte = 0; byte < rules.byte_ids.size() && !rules.unknown; ++byte) {
    if (rules.byte_ids[byte] < 0) bytes += static_cast<char>(byte);
  }
  return bytes;
}

// "eos_token" is a string or, in older files, an object with its content.
std::optional<std::string> token_named(const JsonPart& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  const JsonPart part = config.at(key);
  return part.is_string() ? part.string() : part.at("content").string();
}

}  // namespace

Tokenizer::Tokenizer(TokenizerFile file, std::string name)
    : name_(std::move(name)),
      tokens_(std::move(file.tokens)),
      ids_(std::move(file.ids)),
      normalizer_(file.normalizer),
      pre_tokenizer_(std::move(file.pre_tokenizer)),
      verbatim_tokens_(select(file.added, false, normalizer_)),
      normalized_tokens_(select(file.added, true, normalizer_)),
      uncovered_bytes_(uncovered(file.rules)),
      bpe_(std::move(file.rules)),
      prefix_(std::move(file.prefix)),
      suffix_(std::move(file.suffix)) {}

Tokenizer Tokenizer::load(const std::filesystem::path& folder_or_file) {
  const auto path = std::filesystem::is_directory(folder_or_file) ? folder_or_file / "tokenizer.json" : folder_or_file;
  Tokenizer tokenizer(read_tokenizer_file(TokenizerJson::read(path)), path.string());
  const auto config = path.parent_path() / "tokenizer_config.json";
  if (std::filesystem::exists(config)) tokenizer.read_config(config);
  return tokenizer;
}

void Tokenizer::read_config(const std::filesystem::path& path) {
  const TokenizerJson file = TokenizerJson::read(path);
  const JsonPart config(file);
  const auto token = token_named(config, "eos_token");
  if (!token) return;
  end_of_sequence_ = token_to_id(*token);
  if (!end_of_sequence_) config.at("eos_token").fail("token " + sluice::quoted(*token) + " is not in " + name_);
}

std::vector<int64_t> Tokenizer::encode(std::string_view utf8, bool add_special) const {
  if (utf8.size() > kLongestText) {
    throw UserError("a text of " + human_bytes(static_cast<double>(utf8.size())) + " is too long to be tokenized at once",
                    "cut it into pieces below 512 MiB");
  }
  std::string replaced;
  if (!is_utf8(utf8)) utf8 = replaced = replace_invalid_utf8(utf8);

  std::vector<int64_t> ids;
  Bpe::Workspace workspace;
  if (add_special) ids = prefix_;
  for (const auto& [text, token] : verbatim_tokens_.split(utf8)) {
    if (token) {
      ids.push_back(token->id);
    } else {
      encode_text(text, workspace, ids);
    }
  }
  if (add_special) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

void Tokenizer::encode_text(std::string_view text, Bpe::Workspace& workspace, std::vector<int64_t>& ids) const {
  std::string changed;
  if (!normalizer_.changes_nothing()) text = changed = normalizer_.apply(text);
  for (const auto& [part, token] : normalized_tokens_.split(text)) {
    if (token) {
      ids.push_back(token->id);
    } else {
      encode_words(part, workspace, ids);
    }
  }
}

void Tokenizer::encode_words(std::string_view normalized, Bpe::Workspace& workspace, std::vector<int64_t>& ids) const {
  std::deque<std::string> storage;
  for (const std::string_view word : pre_tokenizer_.words(normalized, storage)) {
    bpe_.encode(word, workspace, ids);
  }
}

const TokenizerFile::Token* Tokenizer::find(int64_t id) const {
  const bool known = id >= 0 && static_cast<size_t>(id) < tokens_.size() && !tokens_[static_cast<size_t>(id)].text.empty();
  return known ? &tokens_[static_cast<size_t>(id)] : nullptr;
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int64_t id : ids) {
    const auto* token = find(id);
    if (token && !(skip_special && token->special)) bytes += token->bytes;
  }
  return replace_invalid_utf8(bytes);
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

std::string_view Tokenizer::token_bytes(int64_t id) const {
  const auto* token = find(id);
  return token ? std::string_view(token->bytes) : std::string_view();
}

}  // namespace sluice::text
