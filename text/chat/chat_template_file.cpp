#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer_json.h"

namespace sluice::text {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kSpecialTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                            "pad_token", "cls_token", "mask_token"};

constexpr int64_t kMostTemplateBytes = 1 << 20;  // the largest that are published have some 20 kB

struct Source {
  std::string text;
  std::string name;  // where it stands
};
using Sources = std::map<std::string, Source>;

Sources from_jinja_files(const fs::path& folder) {
  Sources sources;
  if (const fs::path file = folder / "chat_template.jinja"; is_there(file))
    sources["default"] = {read_file(file, kMostTemplateBytes), file.string()};
  const fs::path more = folder / "additional_chat_templates";
  if (!is_folder(more)) return sources;
  for (const fs::path& entry : entries_of(more)) {
    if (entry.extension() == ".jinja") sources[entry.stem().string()] = {read_file(entry, kMostTemplateBytes), entry.string()};
  }
  return sources;
}

// A text, or a list of {"name": ..., "template": ...}.
Sources from_key(const fs::path& file) {
  Sources sources;
  if (!is_there(file)) return sources;
  const TokenizerJson json = TokenizerJson::read(file);
  const JsonPart root(json);
  if (!root.has("chat_template")) return sources;
  const JsonPart value = root.at("chat_template");
  if (value.is_string()) {
    sources["default"] = {value.string(), value.place()};
    return sources;
  }
  if (!value.value().is_array()) value.fail("expected a text or a list of {\"name\", \"template\"}");
  for (const JsonPart& named : value.elements())
    sources[named.at("name").string()] = {named.at("template").string(), named.place()};
  if (sources.empty()) value.fail("the list of templates is empty");
  return sources;
}

// Empty: there is none.
Sources find_sources(const fs::path& folder) {
  if (Sources files = from_jinja_files(folder); !files.empty()) return files;
  if (Sources config = from_key(folder / "tokenizer_config.json"); !config.empty()) return config;
  return from_key(folder / "chat_template.json");
}

Sources sources_of(const fs::path& folder) {
  if (Sources sources = find_sources(folder); !sources.empty()) return sources;
  throw UserError(
      folder.string() + " has no chat template: neither chat_template.jinja nor \"chat_template\" in tokenizer_config.json",
      "put one there as chat_template.jinja, or send texts in place of conversations; rlhf-run model render has --template FILE");
}

bool is_special_token(std::string_view key) {
  return std::find(kSpecialTokens.begin(), kSpecialTokens.end(), key) != kSpecialTokens.end();
}

// The text of a token: a string, or an object with its "content".
std::optional<std::string> token_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) return value["content"].get<std::string>();
  return std::nullopt;
}

void add_tokens(const JsonPart& object, Json& tokens) {
  if (!object.value().is_object()) object.fail("expected an object");
  for (const auto& [key, value] : object.value().items()) {
    if (!key.ends_with("_token")) continue;
    const auto text = token_text(value);
    if (text) tokens[key] = *text;
    // A model may have switches of such a name (add_bos_token); what is special must be a text.
    if (!text && is_special_token(key) && !value.is_null())
      object.at(key.c_str()).fail("expected a text or an object with \"content\"");
  }
  if (object.has("extra_special_tokens") && object.at("extra_special_tokens").value().is_object()) {
    for (const auto& [key, value] : object.at("extra_special_tokens").value().items()) {
      if (const auto text = token_text(value)) tokens[key] = *text;
    }
  }
}

}  // namespace

Json special_tokens_of(const fs::path& folder) {
  Json tokens = Json::object();
  const fs::path config_file = folder / "tokenizer_config.json", map_file = folder / "special_tokens_map.json";
  bool complete = false;
  if (is_there(config_file)) {
    const TokenizerJson config = TokenizerJson::read(config_file);
    const JsonPart root(config);
    add_tokens(root, tokens);
    complete = root.has("added_tokens_decoder");  // then the older file beside it is not read
  }
  if (!complete && is_there(map_file)) {
    const TokenizerJson map = TokenizerJson::read(map_file);
    add_tokens(JsonPart(map), tokens);
  }
  return tokens;
}

bool ChatTemplate::is_in(const fs::path& folder) { return !find_sources(folder).empty(); }

ChatTemplate ChatTemplate::load(const fs::path& folder) {
  if (!is_folder(folder)) throw UserError(folder.string() + " is not a model folder");
  ChatTemplate chat;
  chat.name_ = folder.string();
  for (auto& [name, source] : sources_of(folder))
    chat.templates_.emplace(name, jinja::Template(std::move(source.text), source.name));
  chat.special_tokens_ = special_tokens_of(folder);
  return chat;
}

ChatTemplate ChatTemplate::load(const fs::path& folder, const fs::path& file) {
  return ChatTemplate(read_file(file, kMostTemplateBytes), file.string(), special_tokens_of(folder));
}

}  // namespace sluice::text
