#include "text/tokenizer/tokenizer_normalizer.h"

#include "base/text/strings.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/character_steps.h"
#include "text/tokenizer/growth.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/unicode/unicode.h"
#include "text/unicode/white_space.h"

namespace sluice::text {
namespace {

constexpr size_t kMostNormalizerSteps = 64;
constexpr const char* kNormalizerTypes =
    "null, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, Precompiled, BertNormalizer, Nmt, Sequence";

std::shared_ptr<const Charsmap> read_charsmap(const JsonPart& part) {
  const auto bytes = from_base64(part.string());
  if (!bytes) part.fail("a charsmap of SentencePiece in base64 was expected here");
  return std::make_shared<const Charsmap>(*bytes, part.place());
}

}  // namespace

Normalizer::Normalizer(const JsonPart& part) : where_(part.place()) {
  if (!part.is_null()) read(part);
}

void Normalizer::read(const JsonPart& part) {
  const std::string type = part.type();
  if (steps_.size() == kMostNormalizerSteps)
    part.fail("the normalizer has more than " + std::to_string(kMostNormalizerSteps) + " steps");
  if (type == "Sequence") {
    for (const JsonPart& element : part.at("normalizers").elements()) read(element);
  } else if (type == "NFC") {
    steps_.emplace_back(NormalForm::kNfc);
  } else if (type == "NFD") {
    steps_.emplace_back(NormalForm::kNfd);
  } else if (type == "NFKC") {
    steps_.emplace_back(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    steps_.emplace_back(NormalForm::kNfkd);
  } else if (type == "Lowercase") {
    steps_.emplace_back(Lowercase{});
  } else if (type == "Strip") {
    steps_.emplace_back(Strip{part.boolean_or("strip_left", true), part.boolean_or("strip_right", true)});
  } else if (type == "StripAccents") {
    steps_.emplace_back(Drop{code_point_class::kMark});
  } else if (type == "BertNormalizer") {
    read_bert(part);
  } else if (type == "Nmt") {
    steps_.emplace_back(CleanForNmt{});
  } else if (type == "Precompiled") {
    steps_.emplace_back(Precompiled{read_charsmap(part.at("precompiled_charsmap")), part.boolean_or("longest_match", false)});
  } else if (type == "Prepend") {
    steps_.emplace_back(Prepend{part.at("prepend").string()});
  } else if (type == "Replace") {
    steps_.emplace_back(Replace{Matcher::read(part.at("pattern")), part.at("content").string(), part.place()});
  } else {
    part.fail_unsupported("normalizer type " + sluice::quoted(type), kNormalizerTypes);
  }
}

void Normalizer::read_bert(const JsonPart& part) {
  const bool lowercase = part.boolean_or("lowercase", true);
  if (part.boolean_or("clean_text", true)) steps_.emplace_back(CleanForBert{});
  if (part.boolean_or("handle_chinese_chars", true)) steps_.emplace_back(SpaceIdeographs{});
  if (part.boolean_or("strip_accents", lowercase)) {
    steps_.emplace_back(NormalForm::kNfd);
    steps_.emplace_back(Drop{code_point_class::kBertAccent});
  }
  if (lowercase) steps_.emplace_back(Lowercase{});
}

std::string Normalizer::apply(std::string_view text, bool& is_first) const {
  std::string changed;
  std::string_view current = text;
  for (const Step& step : steps_) {
    if (current.empty()) break;
    changed = std::visit([&](const auto& kind) { return run(kind, current, is_first); }, step);
    check_growth(text.size(), changed.size(), where_);
    current = changed;
  }
  return steps_.empty() ? std::string(text) : changed;
}

std::string Normalizer::run(NormalForm form, std::string_view text, bool&) { return to_normal_form(text, form); }

std::string Normalizer::run(const Prepend& step, std::string_view text, bool&) { return step.prefix + std::string(text); }

std::string Normalizer::run(const Replace& step, std::string_view text, bool& is_first) {
  std::string replaced;
  size_t done = 0;
  step.matcher.for_each(text, [&](Matcher::Match match) {
    if (match.begin == 0 && match.end > 0 && step.content.empty()) is_first = false;
    replaced += text.substr(done, match.begin - done);
    replaced += step.content;
    done = match.end;
    check_growth(text.size(), replaced.size(), step.where);
  });
  replaced += text.substr(done);
  return replaced;
}

std::string Normalizer::run(const Lowercase&, std::string_view text, bool&) { return lower_cased(text); }

std::string Normalizer::run(const Drop& step, std::string_view text, bool& is_first) {
  return without(text, step.classes, is_first);
}

std::string Normalizer::run(const CleanForBert&, std::string_view text, bool& is_first) {
  return cleaned_for_bert(text, is_first);
}

std::string Normalizer::run(const SpaceIdeographs&, std::string_view text, bool&) { return spaced_ideographs(text); }

std::string Normalizer::run(const CleanForNmt&, std::string_view text, bool& is_first) { return cleaned_for_nmt(text, is_first); }

std::string Normalizer::run(const Precompiled& step, std::string_view text, bool&) {
  return step.takes_longest ? step.charsmap->apply_longest(text) : step.charsmap->apply(text);
}

std::string Normalizer::run(const Strip& step, std::string_view text, bool& is_first) {
  const size_t begin = step.left ? white_space_end(text, 0) : 0;
  const size_t end = step.right ? white_space_begin(text, begin, text.size()) : text.size();
  is_first = is_first && begin == 0;
  return std::string(text.substr(begin, end - begin));
}

}  // namespace sluice::text
