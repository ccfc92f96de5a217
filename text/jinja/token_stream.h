#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/lexer.h"

namespace sluice::text::jinja {

/// The tokens from the front on, for the two halves of the parser.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& look() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[position_ + 1 < tokens_.size() ? position_++ : position_]; }
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view symbol);
  const Token& expect(TokenType type, const char* what);
  void expect_operator(std::string_view symbol);
  void expect_name(std::string_view name);
  [[noreturn]] void fail(const std::string& message, int line = 0) const;

 private:
  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace sluice::text::jinja
