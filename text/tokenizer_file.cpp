#include "text/tokenizer_file.h"

#include "base/error.h"
#include "base/strings.h"
#include "text/byte_level.h"

namespace sluice::text {
namespace {

using Tokens = std::vector<TokenizerFile::Token>;
using Ids = std::unordered_map<std::string, int64_t>;

constexpr size_t kMostUnusedIds = 1'000'000;  // bounds the memory that one absurd id can ask for

std::string bytes_of_token(const std::string& text) { return from_byte_alphabet(text).value_or(text); }

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
  tokens[index] = {text, bytes_of_token(text), false};
  ids.emplace(text, id);
}

void read_vocabulary(const JsonPart& vocab, size_t count, TokenizerFile& result) {
  if (!vocab.value().is_object()) vocab.fail("an object of token to id was expected here");
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
  for (const JsonPart& part : list.elements()) {
    const AddedToken token = read_added_token(part);
    const auto known = result.ids.find(token.content);
    if (known == result.ids.end()) {
      add_token(result.tokens, result.ids, token.content, token.id, count, part);
    } else if (known->second != token.id) {
      part.fail("token " + sluice::quoted(token.content) + " has id " + std::to_string(token.id) + " here, but " +
                std::to_string(known->second) + " before");
    }
    result.tokens[static_cast<size_t>(token.id)].special |= token.special;
    result.added.push_back(token);
  }
}

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

std::vector<BpeMerge> read_merges(const JsonPart& merges, const Ids& ids) {
  if (!merges.value().is_array()) merges.fail("a list was expected here");
  std::vector<BpeMerge> rules;
  rules.reserve(merges.value().size());
  for (const auto& merge : merges.value()) {
    const MergePair pair = read_merge(merge, merges, rules.size());
    const auto id_of = [&](const std::string& text) {
      const auto found = ids.find(text);
      if (found == ids.end()) {
        merges.fail("merge " + std::to_string(rules.size()) + " (" + sluice::quoted(pair.left) + ", " +
                    sluice::quoted(pair.right) + ") needs token " + sluice::quoted(text) + ", which is not in model.vocab");
      }
      return static_cast<int32_t>(found->second);
    };
    rules.push_back({id_of(pair.left), id_of(pair.right), id_of(pair.left + pair.right)});
  }
  return rules;
}

void refuse_other_models(const JsonPart& model) {
  const std::string type = model.has("type") ? model.type() : "BPE";
  if (type != "BPE") model.fail_unsupported("model type " + sluice::quoted(type), "BPE");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.has(key) && !model.at(key).string().empty()) {
      model.at(key).fail_unsupported(sluice::quoted(model.at(key).string()), "none");
    }
  }
  if (model.has("dropout") && model.at("dropout").value() != 0) model.at("dropout").fail_unsupported("dropout of merges", "none");
  if (model.boolean_or("byte_fallback", false)) {
    model.at("byte_fallback").fail_unsupported("byte fallback (SentencePiece)", "false");
  }
}

void read_model(const JsonPart& model, TokenizerFile& result) {
  result.rules.merges = read_merges(model.at("merges"), result.ids);
  result.rules.ignore_merges = model.boolean_or("ignore_merges", false);
  result.rules.fuse_unknown = model.boolean_or("fuse_unk", false);
  if (model.has("unk_token")) {
    const JsonPart part = model.at("unk_token");
    const auto unknown = result.ids.find(part.string());
    if (unknown == result.ids.end()) part.fail("token " + sluice::quoted(part.string()) + " is not in model.vocab");
    result.rules.unknown = static_cast<int32_t>(unknown->second);
  }
  result.rules.byte_ids.fill(-1);
  for (const auto& [text, id] : result.ids) {
    const auto bytes = from_byte_alphabet(text);
    if (!bytes) continue;
    if (bytes->size() == 1) result.rules.byte_ids[static_cast<unsigned char>(bytes->front())] = static_cast<int32_t>(id);
    result.rules.words.emplace(*bytes, static_cast<int32_t>(id));
  }
}

int count_byte_level_decoders(const JsonPart& decoder) {
  const std::string type = decoder.type();
  if (type == "ByteLevel") return 1;
  if (type != "Sequence") decoder.fail_unsupported("decoder type " + sluice::quoted(type), "ByteLevel, Sequence");
  int count = 0;
  for (const JsonPart& element : decoder.at("decoders").elements()) {
    const bool has_no_effect = count == 1 && element.type() == "Fuse";  // there is one piece of text after ByteLevel
    if (!has_no_effect) count += count_byte_level_decoders(element);
  }
  return count;
}

void check_decoder(const JsonPart& decoder) {
  if (decoder.is_null() || count_byte_level_decoders(decoder) != 1) {
    decoder.fail_unsupported("a decoder other than one ByteLevel", "ByteLevel");
  }
}

std::vector<int64_t> read_special_ids(const JsonPart& processor, const std::string& name, size_t vocabulary) {
  const JsonPart token = processor.at("special_tokens").at(name.c_str());
  std::vector<int64_t> ids;
  for (const JsonPart& part : token.at("ids").elements()) {
    const int64_t id = part.integer();
    if (id < 0 || static_cast<size_t>(id) >= vocabulary) part.fail("no token has id " + std::to_string(id));
    ids.push_back(id);
  }
  return ids;
}

void read_template(const JsonPart& processor, TokenizerFile& result) {
  std::vector<int64_t> before, after;
  int texts = 0;
  for (const JsonPart& part : processor.at("single").elements()) {
    if (part.has("Sequence")) {
      ++texts;
      continue;
    }
    auto& side = texts == 0 ? before : after;
    for (const int64_t id : read_special_ids(processor, part.at("SpecialToken").at("id").string(), result.tokens.size())) {
      side.push_back(id);
    }
  }
  if (texts != 1) {
    processor.at("single").fail_unsupported("a template without exactly one Sequence", "one Sequence among SpecialTokens");
  }
  result.prefix.insert(result.prefix.begin(), before.begin(), before.end());
  result.suffix.insert(result.suffix.end(), after.begin(), after.end());
}

void read_post_processor(const JsonPart& processor, TokenizerFile& result) {
  if (processor.is_null()) return;
  const std::string type = processor.type();
  if (type == "ByteLevel") return;  // only moves offsets, which nobody asks for here
  if (type == "TemplateProcessing") {
    read_template(processor, result);
  } else if (type == "Sequence") {
    for (const JsonPart& element : processor.at("processors").elements()) read_post_processor(element, result);
  } else {
    processor.fail_unsupported("post_processor type " + sluice::quoted(type), "ByteLevel, TemplateProcessing, Sequence");
  }
}

}  // namespace

TokenizerFile read_tokenizer_file(const TokenizerJson& file) {
  const JsonPart root(file);
  const JsonPart model = root.at("model");
  const JsonPart added = root.at_or_null("added_tokens");
  refuse_other_models(model);

  TokenizerFile result{.pre_tokenizer = PreTokenizer(root.at_or_null("pre_tokenizer"))};
  result.normalizer = Normalizer(root.at_or_null("normalizer"));
  const size_t count = model.at("vocab").value().size() + added.value().size();
  read_vocabulary(model.at("vocab"), count, result);
  read_model(model, result);  // before the added tokens: those are no business of the merges
  read_added_tokens(added, count, result);
  check_decoder(root.at_or_null("decoder"));
  read_post_processor(root.at_or_null("post_processor"), result);
  return result;
}

}  // namespace sluice::text
