#include "text/tokenizer/matcher.h"

#include <array>

#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/unicode/regex_properties.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

void find_text(std::string_view needle, std::string_view text, Matcher::OnMatch on_match) {
  for (size_t begin = text.find(needle); begin != std::string_view::npos; begin = text.find(needle, begin + needle.size())) {
    on_match({begin, begin + needle.size()});
  }
}

// [byte] -> classes of the character that stands for it
const std::array<uint16_t, 256>& alphabet_classes() {
  static const auto kClasses = [] {
    std::array<uint16_t, 256> classes{};
    for (int byte = 0; byte < 256; ++byte) {
      classes[byte] = CodePointClasses::get()[byte_alphabet_character(static_cast<unsigned char>(byte))];
    }
    return classes;
  }();
  return kClasses;
}

}  // namespace

Matcher Matcher::read(const JsonPart& pattern) {
  if (pattern.has("String")) return literal(pattern.at("String").string(), pattern.place());
  if (pattern.has("Regex")) return regex(pattern.at("Regex").string(), pattern.place());
  pattern.fail("a pattern is {\"Regex\": ...} or {\"String\": ...}");
}

Matcher Matcher::regex(std::string_view pattern, const std::string& where) {
  if (const auto scanner = WordScanner::for_pattern(pattern)) return Matcher(*scanner);
  if (pattern == kThreeDigits) return Matcher(ThreeDigits{});
  return Matcher(Regex(with_fixed_properties(pattern), where));
}

Matcher Matcher::literal(const std::string& text, const std::string& where) {
  if (text.empty()) return Matcher(Regex("", where));  // matches between any two characters
  return Matcher(Literal{text, from_byte_alphabet(text).value_or("")});
}

Matcher Matcher::characters(uint16_t classes) { return Matcher(Characters{classes}); }

Matcher Matcher::words_and_signs() { return Matcher(WordsAndSigns{}); }

void Matcher::for_each(std::string_view text, OnMatch on_match) const {
  std::visit([&](const auto& kind) { find(kind, text, on_match); }, kind_);
}

void Matcher::find(const Regex& regex, std::string_view text, OnMatch on_match) const {
  if (!text.empty()) regex.for_each(text, on_match);  // in the reference nothing matches in an empty text
}

void Matcher::find(const Literal& literal, std::string_view text, OnMatch on_match) const {
  find_text(literal.text, text, on_match);
}

void Matcher::find(const Characters& characters, std::string_view text, OnMatch on_match) const {
  const auto& classes = CodePointClasses::get();
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    if (classes[c.value] & characters.classes) on_match({i, i + c.length});
    i += c.length;
  }
}

void Matcher::find(const WordsAndSigns&, std::string_view text, OnMatch on_match) const {
  using namespace code_point_class;
  const auto& classes = CodePointClasses::get();
  size_t begin = 0;
  uint16_t running = kSpace;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    const uint16_t kind = classes[c.value] & kWord ? kWord : classes[c.value] & kSpace;
    if (kind != running) {
      if (running != kSpace) on_match({begin, i});
      begin = i;
      running = kind;
    }
    i += c.length;
  }
  if (running != kSpace) on_match({begin, text.size()});
}

void Matcher::find(const ThreeDigits&, std::string_view text, OnMatch on_match) const {
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    digits = is_ascii_digit(text[i]) ? digits + 1 : 0;
    if (digits < 3) continue;
    on_match({i - 2, i + 1});
    digits = 0;
  }
}

void Matcher::find(const WordScanner& scanner, std::string_view text, OnMatch on_match) const {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = scanner.word_end(text, begin);
    on_match({begin, end});
    begin = end;
  }
}

void Matcher::for_each_in_alphabet(std::string_view bytes, OnMatch on_match) const {
  if (const auto* literal = std::get_if<Literal>(&kind_)) {
    if (!literal->bytes.empty()) find_text(literal->bytes, bytes, on_match);
    return;
  }
  if (const auto* characters = std::get_if<Characters>(&kind_)) {
    const auto& classes = alphabet_classes();
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (classes[static_cast<unsigned char>(bytes[i])] & characters->classes) on_match({i, i + 1});
    }
    return;
  }
  if (const auto* digits = std::get_if<ThreeDigits>(&kind_)) return find(*digits, bytes, on_match);  // they stand for themselves

  const std::string spelled = to_byte_alphabet(bytes);
  size_t counted = 0, byte = 0;  // `byte` characters lie before `counted`
  const auto byte_at = [&](size_t position) {
    byte += count_code_points(std::string_view(spelled).substr(counted, position - counted));
    counted = position;
    return byte;
  };
  for_each(spelled, [&](Match match) {
    const size_t begin = byte_at(match.begin);
    on_match({begin, byte_at(match.end)});
  });
}

}  // namespace sluice::text
