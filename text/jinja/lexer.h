#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text::jinja {

enum class TokenType : uint8_t {
  kData,           // text to print as it is
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string text;  // data, name, unescaped string, operator
  int64_t integer = 0;
  double real = 0;

  bool is(TokenType expected) const { return type == expected; }
  bool is_operator(std::string_view symbol) const { return type == TokenType::kOperator && text == symbol; }
  bool is_name(std::string_view name) const { return type == TokenType::kName && text == name; }
};

/// "end of the template", "'endif'": the token for a message.
std::string describe(const Token& token);

/// A syntax error, with its line.
struct SyntaxFailure {
  std::string message;
  int line;
};

/// The tokens of a template as chat templates are read: trim_blocks and lstrip_blocks on, the last line break dropped, comments
/// and white space inside of tags gone. `source` must be UTF-8. Throws SyntaxFailure.
std::vector<Token> tokenize(std::string_view source);

}  // namespace sluice::text::jinja
