#include "text/tokenizer_pretokenizer.h"

#include <algorithm>

#include "base/strings.h"
#include "text/byte_level.h"

namespace sluice::text {
namespace {

// GPT-2's words: contractions, letters, digits or other signs with at most one space before them, then white space, of which the
// last blank before a word is left to that word.
constexpr std::string_view kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kPunctuation = R"([\p{P}$+<=>^`|~])";  // Unicode's punctuation and all ASCII signs

constexpr const char* kBehaviors = "Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous";

Splitter::Behavior read_behavior(const JsonPart& part) {
  using enum Splitter::Behavior;
  const std::string& name = part.string();
  if (name == "Isolated") return kIsolated;
  if (name == "Removed") return kRemoved;
  if (name == "MergedWithPrevious") return kMergedWithPrevious;
  if (name == "MergedWithNext") return kMergedWithNext;
  if (name == "Contiguous") return kContiguous;
  part.fail_unsupported("behavior " + sluice::quoted(name), kBehaviors);
}

Regex read_pattern(const JsonPart& part) {
  if (part.has("String")) return {Regex::escape(part.at("String").string()), part.place()};
  if (part.has("Regex")) return {part.at("Regex").string(), part.place()};
  part.fail("a pattern is {\"Regex\": ...} or {\"String\": ...}");
}

std::vector<std::string_view> split_all(const Splitter& splitter, const std::vector<std::string_view>& pieces) {
  std::vector<std::string_view> smaller;
  for (const std::string_view piece : pieces) splitter.split(piece, smaller);
  return smaller;
}

std::string_view with_prefix_space(std::string_view piece, std::deque<std::string>& storage) {
  if (piece.starts_with(' ')) return piece;
  storage.push_back(" " + std::string(piece));
  return storage.back();
}

}  // namespace

std::vector<Splitter::Segment> Splitter::segments(std::string_view text) const {
  std::vector<Segment> segments;
  size_t end = 0;
  for (const Regex::Match& match : pattern_.find_all(text)) {
    if (end < match.begin) segments.push_back({{end, match.begin}, invert_});
    segments.push_back({match, !invert_});
    end = match.end;
  }
  if (end < text.size()) segments.push_back({{end, text.size()}, invert_});
  return segments;
}

// Joins neighbours as the behaviour asks. Two matches in a row are only joined by kContiguous.
void Splitter::join(std::vector<Segment>& segments) const {
  using enum Behavior;
  if (behavior_ == kIsolated || behavior_ == kRemoved) return;
  const bool backwards = behavior_ == kMergedWithNext;
  if (backwards) std::reverse(segments.begin(), segments.end());

  std::vector<Segment> joined;
  bool after_match = false;
  for (const Segment& segment : segments) {
    const bool joins = behavior_ == kContiguous ? segment.is_match == after_match : segment.is_match && !after_match;
    after_match = segment.is_match;
    if (!joins || joined.empty()) {
      joined.push_back(segment);
    } else if (backwards) {
      joined.back().range.begin = segment.range.begin;
    } else {
      joined.back().range.end = segment.range.end;
    }
  }
  if (backwards) std::reverse(joined.begin(), joined.end());
  segments = std::move(joined);
}

void Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  auto parts = segments(text);
  join(parts);
  for (const auto& [range, is_match] : parts) {
    const bool removed = behavior_ == Behavior::kRemoved && is_match;
    if (!removed && range.begin < range.end) pieces.push_back(text.substr(range.begin, range.end - range.begin));
  }
}

PreTokenizer::PreTokenizer(const JsonPart& part) {
  if (!part.is_null()) read(part);
  if (!has_byte_level_) {
    part.fail_unsupported("a pre_tokenizer without ByteLevel",
                          "ByteLevel, or a Sequence of it with Split, Digits and Punctuation");
  }
}

void PreTokenizer::read(const JsonPart& part) {
  using enum Splitter::Behavior;
  const std::string type = part.type();
  if (type == "Sequence") {
    for (const JsonPart& element : part.at("pretokenizers").elements()) read(element);
  } else if (type == "ByteLevel") {
    read_byte_level(part);
  } else if (type == "Split") {
    add_step({read_pattern(part.at("pattern")), read_behavior(part.at("behavior")), part.boolean_or("invert", false)});
  } else if (type == "Digits") {
    add_step({Regex(kDigit, part.place()), part.boolean_or("individual_digits", false) ? kIsolated : kContiguous});
  } else if (type == "Punctuation") {
    add_step({Regex(kPunctuation, part.place()), part.has("behavior") ? read_behavior(part.at("behavior")) : kIsolated});
  } else {
    part.fail_unsupported("pre_tokenizer type " + sluice::quoted(type), "ByteLevel, Split, Digits, Punctuation, Sequence");
  }
}

void PreTokenizer::read_byte_level(const JsonPart& part) {
  if (has_byte_level_) part.fail_unsupported("a second ByteLevel", "one ByteLevel");
  add_prefix_space_ = part.boolean_or("add_prefix_space", true);
  if (part.boolean_or("use_regex", true)) {
    byte_level_words_.emplace(Regex(kGpt2Words, part.place()), Splitter::Behavior::kIsolated);
  }
  has_byte_level_ = true;
}

void PreTokenizer::add_step(Splitter splitter) { (has_byte_level_ ? after_ : before_).push_back(std::move(splitter)); }

std::vector<std::string_view> PreTokenizer::words(std::string_view text, std::deque<std::string>& storage) const {
  std::vector<std::string_view> pieces{text};
  for (const Splitter& splitter : before_) pieces = split_all(splitter, pieces);
  if (add_prefix_space_) {
    for (std::string_view& piece : pieces) piece = with_prefix_space(piece, storage);
  }
  if (byte_level_words_) pieces = split_all(*byte_level_words_, pieces);
  if (after_.empty()) return pieces;

  std::vector<std::string_view> words;
  for (const std::string_view piece : pieces) split_in_alphabet(piece, words);
  return words;
}

// The cuts are made in the alphabet, where a character is a byte of `word`; what is returned are bytes of `word`.
void PreTokenizer::split_in_alphabet(std::string_view word, std::vector<std::string_view>& words) const {
  const std::string spelled = to_byte_alphabet(word);
  std::vector<std::string_view> pieces{spelled};
  for (const Splitter& splitter : after_) pieces = split_all(splitter, pieces);

  size_t byte = 0;
  const char* counted = spelled.data();  // `byte` characters lie before it
  for (const std::string_view piece : pieces) {
    byte += count_code_points({counted, static_cast<size_t>(piece.data() - counted)});
    const size_t length = count_code_points(piece);
    words.push_back(word.substr(byte, length));
    byte += length;
    counted = piece.data() + piece.size();
  }
}

}  // namespace sluice::text
