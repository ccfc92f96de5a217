#include "text/tokenizer/sentencepiece_tokenizer.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_set>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/sentencepiece_file.h"
#include "text/tokenizer/tokenizer_json.h"

namespace sluice::text {
namespace {

using nlohmann::json;
using ModelPiece = SentencePieceFile::Piece;
using ModelPieceKind = SentencePieceFile::Kind;

constexpr const char* kBlankPiece = "\u2581";
constexpr int64_t kExtraIdsOfT5 = 100;  // where tokenizer_config.json does not say
constexpr float kNeverSaid = -std::numeric_limits<float>::infinity();
constexpr int64_t kAllBlanks = INT32_MAX;
constexpr int64_t kMostExtraIds = 100'000;

json step_json(const char* type, json settings = json::object()) {
  settings["type"] = type;
  return settings;
}

json sequence_json(const char* name, json steps) { return step_json("Sequence", {{name, std::move(steps)}}); }

json replace_json(const char* kind, const char* pattern, const char* content) {
  return step_json("Replace", {{"pattern", {{kind, pattern}}}, {"content", content}});
}

// ---- what surrounds the model -----------------------------------------------------------------------------------------------

json normalizer_json(const SentencePieceFile& file) {
  json steps = json::array();
  if (!file.charsmap.empty())
    steps.push_back(step_json("Precompiled", {{"precompiled_charsmap", to_base64(file.charsmap)}, {"longest_match", true}}));
  if (file.remove_extra_whitespaces) {
    steps.push_back(replace_json("Regex", " {2,}", " "));
    steps.push_back(replace_json("Regex", "\\A | \\z", ""));
  }
  if (file.add_dummy_prefix) steps.push_back(step_json("Prepend", {{"prepend", kBlankPiece}}));
  steps.push_back(replace_json("String", " ", kBlankPiece));
  return sequence_json("normalizers", std::move(steps));
}

json decoder_json(const SentencePieceFile& file) {
  json steps = json::array({replace_json("String", kBlankPiece, " ")});
  if (file.byte_fallback) steps.push_back(step_json("ByteFallback"));
  steps.push_back(step_json("Fuse"));
  const int64_t dropped = file.remove_extra_whitespaces ? kAllBlanks : file.add_dummy_prefix;  // at the beginning of a text
  if (dropped > 0) steps.push_back(step_json("Strip", {{"content", " "}, {"start", dropped}, {"stop", 0}}));
  return sequence_json("decoders", std::move(steps));
}

// ---- the model --------------------------------------------------------------------------------------------------------------

// The others stand for what is around a text, is unknown, or is spelled in bytes.
bool is_in_text(const ModelPiece& piece) {
  return piece.kind == ModelPieceKind::kNormal || piece.kind == ModelPieceKind::kUserDefined;
}

// Byte-pair encoding joins the pair whose piece has the highest score: all ways to cut each piece into two, in that order.
json merges_json(const std::vector<ModelPiece>& pieces) {
  std::unordered_set<std::string_view> parts;
  for (const ModelPiece& piece : pieces) {
    if (is_in_text(piece)) parts.insert(piece.text);
  }
  struct Merge {
    float score;
    size_t id;
    std::string_view left, right;
  };
  std::vector<Merge> found;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view text = pieces[id].text;
    if (!parts.contains(text)) continue;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const std::string_view left = text.substr(0, cut), right = text.substr(cut);
      if (parts.contains(left) && parts.contains(right)) found.push_back({pieces[id].score, id, left, right});
    }
  }
  std::ranges::stable_sort(found,
                           [](const Merge& a, const Merge& b) { return std::tie(b.score, a.id) < std::tie(a.score, b.id); });
  json list = json::array();
  for (const Merge& merge : found) list.push_back({merge.left, merge.right});
  return list;
}

json model_json(const SentencePieceFile& file, const std::string& where) {
  const auto unknown = std::ranges::find(file.pieces, ModelPieceKind::kUnknown, &ModelPiece::kind);
  if (unknown == file.pieces.end()) throw UserError(where + " has no piece for what is unknown");
  if (file.model == SentencePieceFile::Model::kUnigram) {
    json vocab = json::array();
    for (const ModelPiece& piece : file.pieces) vocab.push_back({piece.text, is_in_text(piece) ? piece.score : kNeverSaid});
    return step_json("Unigram", {{"vocab", vocab},
                                 {"unk_id", unknown - file.pieces.begin()},
                                 {"byte_fallback", file.byte_fallback},
                                 {"single_precision", true}});
  }
  json vocab = json::object();
  for (size_t id = 0; id < file.pieces.size(); ++id) vocab[file.pieces[id].text] = id;
  return step_json("BPE", {{"vocab", vocab},
                           {"merges", merges_json(file.pieces)},
                           {"unk_token", unknown->text},
                           {"fuse_unk", true},
                           {"byte_fallback", file.byte_fallback}});
}

// ---- what is beside the file ------------------------------------------------------------------------------------------------

bool is_class(const JsonPart& config, std::initializer_list<std::string_view> names) {
  if (!config.has("tokenizer_class")) return false;
  std::string_view name = config.at("tokenizer_class").string();
  if (name.ends_with("Fast")) name.remove_suffix(4);
  return std::ranges::find(names, name) != names.end();
}

void refuse_other_files(const SentencePieceFile& file, const JsonPart& config, const std::string& where) {
  const std::string help =
      "save it once with transformers: AutoTokenizer.from_pretrained(...).save_pretrained(...) writes a tokenizer.json";
  if (config.has("tokenizer_class") &&
      !is_class(config, {"LlamaTokenizer", "GemmaTokenizer", "T5Tokenizer", "PreTrainedTokenizer", "TokenizersBackend"})) {
    config.at("tokenizer_class")
        .fail(sluice::quoted(config.at("tokenizer_class").string()) + " may number the pieces of " + where + " anew", help);
  }
  using Model = SentencePieceFile::Model;
  if (file.model != Model::kUnigram && file.model != Model::kBpe)
    throw UserError(where + ": only models of kind unigram and bpe are supported", help);
  if (file.blank_is_suffix || !file.escape_whitespaces)
    throw UserError(where + ": a model that writes blanks otherwise than before words is not supported", help);
}

int64_t added_id(const std::string& key, const JsonPart& tokens) {
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size()) tokens.fail(sluice::quoted(key) + " is no id");
  return id;
}

// By id. Control symbols are special.
std::map<int64_t, json> added_tokens_json(SentencePieceFile& file, const JsonPart& config) {
  std::map<int64_t, json> added;
  const auto add = [&added](const std::string& text, int64_t id, bool special) {
    added[id] = {{"content", text}, {"id", id}, {"special", special}, {"normalized", false}};
  };
  if (is_class(config, {"T5Tokenizer"})) {
    const int64_t extra = config.has("extra_ids") ? config.at("extra_ids").integer() : kExtraIdsOfT5;
    if (extra < 0 || extra > kMostExtraIds) config.at("extra_ids").fail("a number of tokens was expected here");
    for (int64_t i = extra; i-- > 0;)
      file.pieces.push_back({"<extra_id_" + std::to_string(i) + ">", 0, ModelPieceKind::kControl});
  }
  for (const ModelPiece& piece : file.pieces) {
    const int64_t id = &piece - file.pieces.data();
    const bool special = piece.kind == ModelPieceKind::kControl || piece.kind == ModelPieceKind::kUnknown;
    if (special || piece.kind == ModelPieceKind::kUserDefined) add(piece.text, id, special);
  }
  if (!config.has("added_tokens_decoder")) return added;
  const JsonPart tokens = config.at("added_tokens_decoder");
  if (!tokens.value().is_object()) tokens.fail("an object of id to token was expected here");
  for (const auto& [key, token] : tokens.value().items()) {
    const int64_t id = added_id(key, tokens);
    const std::string& text = tokens.at(key.c_str()).at("content").string();
    if (static_cast<size_t>(id) < file.pieces.size()) file.pieces[static_cast<size_t>(id)].text = text;  // one left free for it
    added[id] = token;
    added[id]["id"] = id;
  }
  return added;
}

json post_processor_json(const SentencePieceFile& file, const JsonPart& config) {
  const bool begins = config.boolean_or("add_bos_token", false);
  const bool ends = config.boolean_or("add_eos_token", file.model == SentencePieceFile::Model::kUnigram);
  json single = json::array(), special = json::object();
  const auto add = [&](bool wanted, int64_t id) {
    if (!wanted || id < 0 || static_cast<size_t>(id) >= file.pieces.size()) return;
    const std::string& text = file.pieces[static_cast<size_t>(id)].text;
    single.push_back({{"SpecialToken", {{"id", text}}}});
    special[text] = {{"ids", json::array({id})}};
  };
  add(begins, file.begin);
  single.push_back({{"Sequence", {{"id", "A"}}}});
  add(ends, file.end);
  return step_json("TemplateProcessing", {{"single", single}, {"special_tokens", special}});
}

}  // namespace

std::optional<std::filesystem::path> sentencepiece_model_in(const std::filesystem::path& folder) {
  for (const char* name : {"tokenizer.model", "spiece.model"}) {
    if (is_there(folder / name)) return folder / name;
  }
  return std::nullopt;
}

TokenizerJson tokenizer_of_sentencepiece(const std::filesystem::path& path) {
  SentencePieceFile file = SentencePieceFile::read(path);
  const auto config_path = path.parent_path() / "tokenizer_config.json";
  const TokenizerJson config_file =
      is_there(config_path) ? TokenizerJson::read(config_path) : TokenizerJson{config_path.string(), json::object()};
  const JsonPart config(config_file);
  refuse_other_files(file, config, path.string());

  TokenizerJson result{path.string(), json::object()};
  json& root = result.root;
  root["added_tokens"] = json::array();
  for (auto& [id, token] : added_tokens_json(file, config)) root["added_tokens"].push_back(std::move(token));
  root["normalizer"] = normalizer_json(file);
  root["pre_tokenizer"] = nullptr;  // sums of scores run over a whole text: what is a tie depends on what is before it
  root["post_processor"] = post_processor_json(file, config);
  root["decoder"] = decoder_json(file);
  root["model"] = model_json(file, path.string());
  return result;
}

}  // namespace sluice::text
