#include "text/tokenizer/tokenizer_bpe.h"

#include <vector>

#include "base/text/strings.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/tokenizer_json.h"

namespace sluice::text {
namespace {

using Ids = std::unordered_map<std::string, int64_t>;

constexpr std::string_view kBlank = "\u2581";  // SentencePiece's

struct MergePair {
  std::string left;
  std::string right;
};

// A merge is "left right", or ["left", "right"] since tokens may hold spaces.
MergePair read_merge(const nlohmann::json& merge, const JsonPart& merges, size_t rank) {
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  merges.fail("merge " + std::to_string(rank) + " must be \"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]");
}

int32_t id_in_merge(const std::string& text, const MergePair& pair, const Ids& ids, const JsonPart& merges, size_t rank) {
  const auto found = ids.find(text);
  if (found == ids.end()) {
    merges.fail("merge " + std::to_string(rank) + " (" + sluice::quoted(pair.left) + ", " + sluice::quoted(pair.right) +
                ") needs token " + sluice::quoted(text) + ", which is not in model.vocab");
  }
  return static_cast<int32_t>(found->second);
}

void read_merges(const JsonPart& merges, const Ids& ids, BpeRules& rules) {
  if (!merges.value().is_array()) merges.fail("a list was expected here");
  const std::string& prefix = rules.symbols.continuing_prefix;
  rules.merges.reserve(merges.value().size());
  rules.cuts_before_blanks = true;
  for (const auto& merge : merges.value()) {
    const size_t rank = rules.merges.size();
    const MergePair pair = read_merge(merge, merges, rank);
    const auto id_of = [&](const std::string& text) { return id_in_merge(text, pair, ids, merges, rank); };
    if (pair.right.size() < prefix.size()) {
      merges.fail("merge " + std::to_string(rank) + " has a right side shorter than model.continuing_subword_prefix");
    }
    rules.merges.push_back({id_of(pair.left), id_of(pair.right), id_of(pair.left + pair.right.substr(prefix.size()))});
    rules.cuts_before_blanks &= !pair.right.starts_with(kBlank) || pair.left.ends_with(kBlank);
  }
}

std::string text_or_empty(const JsonPart& model, const char* key) { return model.has(key) ? model.at(key).string() : ""; }

BpeSymbols::Settings read_symbols(const JsonPart& model, const Ids& ids, bool is_byte_level) {
  BpeSymbols::Settings symbols;
  symbols.byte_level = is_byte_level;
  symbols.byte_fallback = model.boolean_or("byte_fallback", false);
  symbols.fuse_unknown = model.boolean_or("fuse_unk", false);
  symbols.continuing_prefix = text_or_empty(model, "continuing_subword_prefix");
  symbols.end_suffix = text_or_empty(model, "end_of_word_suffix");
  if (symbols.byte_fallback && !(symbols.continuing_prefix.empty() && symbols.end_suffix.empty())) {
    model.at("byte_fallback").fail_unsupported("byte fallback with a subword prefix or suffix", "one of both");
  }
  if (model.has("unk_token")) {
    const JsonPart part = model.at("unk_token");
    const auto unknown = ids.find(part.string());
    if (unknown == ids.end()) part.fail("token " + sluice::quoted(part.string()) + " is not in model.vocab");
    symbols.unknown = static_cast<int32_t>(unknown->second);
  }
  return symbols;
}

}  // namespace

void refuse_unsupported_bpe(const JsonPart& model) {
  if (model.has("dropout") && model.at("dropout").value() != 0) model.at("dropout").fail_unsupported("dropout of merges", "none");
}

BpeRules read_bpe(const JsonPart& model, const Ids& ids, bool is_byte_level) {
  BpeRules rules;
  rules.symbols = read_symbols(model, ids, is_byte_level);
  rules.ignore_merges = model.boolean_or("ignore_merges", false);
  read_merges(model.at("merges"), ids, rules);
  for (const auto& [text, id] : ids) {
    const auto word = is_byte_level ? from_byte_alphabet(text) : text;  // other words cannot occur
    if (word) rules.words.emplace(*word, static_cast<int32_t>(id));
  }
  return rules;
}

}  // namespace sluice::text
