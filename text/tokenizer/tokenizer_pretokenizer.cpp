#include "text/tokenizer/tokenizer_pretokenizer.h"

#include <string>

#include "base/text/strings.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr size_t kMostPreTokenizerSteps = 64;  // they nest on the stack
constexpr const char* kPreTokenizerTypes =
    "ByteLevel, Split, Digits, Punctuation, Metaspace, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit, "
    "Sequence";

}  // namespace

PreTokenizer::PreTokenizer(const JsonPart& part) {
  if (!part.is_null()) read(part);
}

void PreTokenizer::read(const JsonPart& part) {
  using namespace code_point_class;
  using enum Splitter::Behavior;
  const std::string type = part.type();
  if (steps_.size() == kMostPreTokenizerSteps)
    part.fail("the pre_tokenizer has more than " + std::to_string(kMostPreTokenizerSteps) + " steps");
  if (type == "Sequence") {
    for (const JsonPart& element : part.at("pretokenizers").elements()) read(element);
  } else if (type == "ByteLevel") {
    read_byte_level(part);
  } else if (type == "Split") {
    add_split({Matcher::read(part.at("pattern")), read_behavior(part.at("behavior")), part.boolean_or("invert", false)});
  } else if (type == "Digits") {
    add_split({Matcher::characters(kNumeric), part.boolean_or("individual_digits", false) ? kIsolated : kContiguous});
  } else if (type == "Punctuation") {
    add_split({Matcher::characters(kPunctuation), part.has("behavior") ? read_behavior(part.at("behavior")) : kIsolated});
  } else if (type == "WhitespaceSplit") {
    add_split({Matcher::characters(kSpace), kRemoved});
  } else if (type == "Whitespace") {
    add_split({Matcher::words_and_signs(), kRemoved, true});
  } else if (type == "BertPreTokenizer") {
    add_split({Matcher::characters(kSpace), kRemoved});
    add_split({Matcher::characters(kPunctuation), kIsolated});
  } else if (type == "CharDelimiterSplit") {
    const JsonPart delimiter = part.at("delimiter");
    if (count_code_points(delimiter.string()) != 1) delimiter.fail("one character was expected here");
    add_split({Matcher::literal(delimiter.string(), part.place()), kRemoved});
  } else if (type == "Metaspace") {
    if (is_byte_level_) part.fail_unsupported("Metaspace after ByteLevel", "Metaspace before it, or without it");
    steps_.emplace_back(MetaspaceStep(part));
  } else {
    part.fail_unsupported("pre_tokenizer type " + sluice::quoted(type), kPreTokenizerTypes);
  }
}

void PreTokenizer::read_byte_level(const JsonPart& part) {
  if (is_byte_level_) part.fail_unsupported("a second ByteLevel", "one ByteLevel");
  if (part.boolean_or("add_prefix_space", true)) steps_.emplace_back(PrefixSpace{});
  if (part.boolean_or("use_regex", true)) {
    add_split({Matcher::regex(WordScanner::kGpt2Pattern, part.place()), Splitter::Behavior::kIsolated});
  }
  is_byte_level_ = true;
}

void PreTokenizer::add_split(Splitter splitter) { steps_.emplace_back(SplitStep{std::move(splitter), is_byte_level_}); }

void PreTokenizer::for_each_word(Piece text, FunctionRef<void(std::string_view)> sink) const { run(0, text, sink); }

void PreTokenizer::run(size_t step, Piece piece, FunctionRef<void(std::string_view)> sink) const {
  if (step == steps_.size()) return sink(piece.text);
  const auto next = [this, step, sink](Piece part) { run(step + 1, part, sink); };
  if (const auto* split = std::get_if<SplitStep>(&steps_[step])) {
    split->splitter.split(piece, split->in_alphabet, next);
  } else if (const auto* metaspace = std::get_if<MetaspaceStep>(&steps_[step])) {
    metaspace->apply(piece, next);
  } else if (piece.text.starts_with(' ')) {
    next(piece);
  } else {
    const std::string with_space = " " + std::string(piece.text);
    next({with_space, piece.is_first});
  }
}

}  // namespace sluice::text
