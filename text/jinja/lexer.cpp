#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/text/strings.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Line breaks of every system become \n; the last one is dropped.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      text += '\n';
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) root();
    add(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw SyntaxFailure{message, line_}; }

  std::string_view rest() const { return std::string_view(source_).substr(position_); }
  bool at(std::string_view text) const { return rest().starts_with(text); }

  void add(TokenType type, std::string text) { tokens_.push_back({.type = type, .line = line_, .text = std::move(text)}); }

  void advance(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (source_[position_ + i] == '\n') ++line_;
    }
    line_starting_ = count > 0 && source_[position_ + count - 1] == '\n';
    position_ += count;
  }

  void skip_spaces() {
    size_t end = position_;
    while (end < source_.size()) {
      size_t next = end;
      if (!unicode::is_space(unicode::next(source_, next))) break;
      end = next;
    }
    advance(end - position_);
  }

  // What precedes a tag at `tag`, whose opening carries the white space control `sign`.
  void add_data(size_t tag, char sign, bool strips_line) {
    std::string_view text = rest().substr(0, tag - position_);
    if (sign == '-') {
      text = unicode::strip(text, false, true);
    } else if (sign != '+' && strips_line) {
      const size_t line = text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1;
      const bool blank = unicode::strip(text.substr(line), true, true).empty();
      if ((line > 0 || line_starting_) && blank) text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenType::kData, std::string(text));
    advance(tag - position_);
  }

  char sign_at(size_t position) const {
    const char c = position < source_.size() ? source_[position] : ' ';
    return c == '-' || c == '+' ? c : ' ';
  }

  // The byte after `{%`, sign, `raw`, `%}`; 0 when this tag is another one. `name`: raw or endraw.
  size_t raw_tag_end(size_t tag, std::string_view name) const {
    size_t i = tag + 2 + (sign_at(tag + 2) != ' ' ? 1 : 0);
    const auto spaces = [&] {
      for (size_t next = i; i < source_.size() && unicode::is_space(unicode::next(source_, next)); i = next) {
      }
    };
    spaces();
    if (!std::string_view(source_).substr(i).starts_with(name)) return 0;
    i += name.size();
    spaces();
    const std::string_view end = std::string_view(source_).substr(i);
    if (end.starts_with("-%}")) {
      i += 3;
      spaces();
      return i;
    }
    if (end.starts_with("%}")) return name == "endraw" && end.starts_with("%}\n") ? i + 3 : i + 2;
    return name == "endraw" && end.starts_with("+%}") ? i + 3 : 0;
  }

  void root() {
    size_t tag = position_;
    do {
      tag = source_.find('{', tag);
      if (tag == std::string::npos) break;
      const char next = tag + 1 < source_.size() ? source_[tag + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    } while (true);
    if (tag == std::string::npos) {
      add(TokenType::kData, std::string(rest()));
      advance(source_.size() - position_);
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    add_data(tag, sign, kind != '{');
    const size_t raw_end = kind == '%' ? raw_tag_end(tag, "raw") : 0;
    if (raw_end > 0) {
      advance(raw_end - tag);
      raw();
      return;
    }
    const int line = line_;
    advance(sign == ' ' ? 2 : 3);
    if (kind == '#') {
      comment();
    } else {
      tokens_.push_back({.type = kind == '{' ? TokenType::kVariableBegin : TokenType::kBlockBegin, .line = line});
      inside(kind == '%');
    }
  }

  void raw() {
    for (size_t tag = source_.find("{%", position_); tag != std::string::npos; tag = source_.find("{%", tag + 2)) {
      const size_t end = raw_tag_end(tag, "endraw");
      if (end == 0) continue;
      add_data(tag, sign_at(tag + 2), true);
      advance(end - tag);
      return;
    }
    fail("{% raw %} has no {% endraw %}");
  }

  void comment() {
    const size_t end = source_.find("#}", position_);
    if (end == std::string::npos) fail("the comment has no end #}");
    const char sign = end > position_ ? sign_at(end - 1) : ' ';
    advance(end + 2 - position_);
    if (sign == '-') skip_spaces();
    if (sign == ' ' && at("\n")) advance(1);
  }

  // True when the tag ended here.
  bool end_of_tag(bool block) {
    const std::string_view close = block ? "%}" : "}}";
    const char sign = sign_at(position_);
    const bool signed_end = (sign == '-' || (sign == '+' && block)) && rest().substr(1).starts_with(close);
    if (!signed_end && !at(close)) return false;
    add(block ? TokenType::kBlockEnd : TokenType::kVariableEnd, "");
    advance(signed_end ? 3 : 2);
    if (signed_end && sign == '-') skip_spaces();
    if (!signed_end && block && at("\n")) advance(1);
    return true;
  }

  void inside(bool block) {
    std::string open;  // brackets that wait for their end
    while (position_ < source_.size()) {
      if (open.empty() && end_of_tag(block)) return;
      size_t next = position_;
      const char32_t c = unicode::next(source_, next);
      if (unicode::is_space(c)) {
        skip_spaces();
      } else if (c < 0x80 && is_digit(static_cast<char>(c))) {
        number();
      } else if (unicode::is_identifier_start(c)) {
        name();
      } else if (c == '"' || c == '\'') {
        string(static_cast<char>(c));
      } else {
        operation(open);
      }
    }
    fail(block ? "the tag has no end %}" : "the expression has no end }}");
  }

  void name() {
    size_t end = position_;
    while (end < source_.size()) {
      size_t next = end;
      if (!unicode::is_identifier_part(unicode::next(source_, next))) break;
      end = next;
    }
    add(TokenType::kName, source_.substr(position_, end - position_));
    advance(end - position_);
  }

  // Digits with single underscores between them, from `begin` on.
  size_t digits_end(size_t begin) const {
    const auto digit = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
    size_t end = begin;
    while (digit(end) || (end > begin && digit(end - 1) && end < source_.size() && source_[end] == '_' && digit(end + 1))) ++end;
    return end;
  }

  static std::string without_underscores(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    return text;
  }

  bool real() {
    if (position_ > 0 && source_[position_ - 1] == '.') return false;
    const size_t whole = digits_end(position_);
    size_t end = whole;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) end = digits_end(end + 1);
    if (end < source_.size() && (source_[end] | 0x20) == 'e') {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      if (exponent < source_.size() && is_digit(source_[exponent])) end = digits_end(exponent);
    }
    if (end == whole) return false;
    const std::string text = without_underscores(source_.substr(position_, end - position_));
    tokens_.push_back({.type = TokenType::kFloat, .line = line_, .text = text, .real = std::strtod(text.c_str(), nullptr)});
    advance(end - position_);
    return true;
  }

  // 0x1F, 0o17, 0b101, else decimal.
  void integer() {
    const char letter =
        position_ + 1 < source_.size() && source_[position_] == '0' ? static_cast<char>(source_[position_ + 1] | 0x20) : ' ';
    int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    const auto value_of = [&](char c) {
      return is_digit(c) ? c - '0' : std::isalpha(static_cast<unsigned char>(c)) ? (c | 0x20) - 'a' + 10 : 99;
    };
    size_t begin = position_ + (base == 10 ? 0 : 2), end = begin;
    const auto read = [&] {
      for (size_t i = begin; i < source_.size(); ++i) {
        if (value_of(source_[i]) < base)
          end = i + 1;
        else if (source_[i] != '_' || (i != end))
          break;
      }
    };
    read();
    if (base != 10 && end == begin) {  // 0x without digits is 0, then a name
      base = 10;
      begin = end = position_;
    }
    if (base == 10) {
      if (source_[begin] == '0') {
        end = begin;
        while (end < source_.size() &&
               (source_[end] == '0' || (source_[end] == '_' && end + 1 < source_.size() && source_[end + 1] == '0')))
          ++end;
      } else {
        end = digits_end(begin);
      }
    }
    const std::string digits = without_underscores(source_.substr(begin, end - begin));
    int64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec != std::errc())
      fail("the integer " + digits + " does not fit into 64 bits");
    tokens_.push_back({.type = TokenType::kInteger, .line = line_, .text = digits, .integer = value});
    advance(end - position_);
  }

  void number() {
    if (!real()) integer();
  }

  void string(char quote) {
    size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("the string has no end " + std::string(1, quote));
    std::string text;
    if (const char* wrong = unescape(std::string_view(source_).substr(position_ + 1, end - position_ - 1), text)) fail(wrong);
    add(TokenType::kString, std::move(text));
    advance(end + 1 - position_);
  }

  void operation(std::string& open) {
    constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                             "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                             ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* const found =
        std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view symbol) { return at(symbol); });
    if (found == kOperators.end())
      fail("unexpected character " + sluice::quoted(rest().substr(0, std::max<size_t>(1, unicode::offset_of(rest(), 1)))));
    const char c = found->front();
    if (*found == "(" || *found == "[" || *found == "{") open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (*found == ")" || *found == "]" || *found == "}") {
      if (open.empty()) fail("unexpected '" + std::string(*found) + "'");
      if (open.back() != c) fail("unexpected '" + std::string(*found) + "', expected '" + std::string(1, open.back()) + "'");
      open.pop_back();
    }
    add(TokenType::kOperator, std::string(*found));
    advance(found->size());
  }

  const std::string source_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "text";
    case TokenType::kVariableBegin:
      return "'{{'";
    case TokenType::kVariableEnd:
      return "'}}'";
    case TokenType::kBlockBegin:
      return "'{%'";
    case TokenType::kBlockEnd:
      return "'%}'";
    case TokenType::kString:
      return "a string";
    case TokenType::kInteger:
    case TokenType::kFloat:
      return "the number " + token.text;
    case TokenType::kEnd:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace sluice::text::jinja
