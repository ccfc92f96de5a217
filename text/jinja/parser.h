#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace sluice::text::jinja {

/// How deep tags and expressions of a template may nest. The trees are walked recursively.
constexpr int kDeepestTemplate = 200;

/// The most named arguments of a call and parameters of a macro: each is compared with each.
constexpr size_t kMostNames = 1000;

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

/// Expressions, in the grammar and precedence of Jinja.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExpressionPtr parse_expression(bool with_conditional = true);
  /// One expression, or several with commas between them: a tuple. `end`: a name that also ends it (`in`, `recursive`).
  ExpressionPtr parse_tuple(bool with_conditional = true, const char* end = nullptr, bool in_parentheses = false);
  /// What can be assigned to. `with_attributes`: also namespace.attribute.
  ExpressionPtr parse_target(const char* end = nullptr, bool with_attributes = false, bool with_tuple = true);
  ExpressionPtr parse_filters(ExpressionPtr on, bool begins_with_name);

  int strings() const { return strings_; }

 private:
  class Level;
  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filter = true);
  ExpressionPtr parse_primary(bool with_attributes = false);
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr on);
  ExpressionPtr parse_filter_or_test(ExpressionPtr on);
  ExpressionPtr parse_subscript(ExpressionPtr on);
  ExpressionPtr parse_index();
  ExpressionPtr parse_call(ExpressionPtr on);
  void parse_arguments(Expression& into);
  ExpressionPtr parse_test(ExpressionPtr on);
  std::string parse_dotted_name();
  bool is_tuple_end(const char* end) const;
  static ExpressionPtr leaf(ExpressionKind kind, int line);
  template <class... Children>
  ExpressionPtr make(ExpressionKind kind, int line, Children... children);
  void adopt(Expression& parent, ExpressionPtr child);
  void raise(Expression& parent, const Expression* child);

  TokenStream& stream_;
  int depth_ = 0;
  int strings_ = 0;
};

/// The tree of a template, with its variables bound. Throws SyntaxFailure.
Tree parse(std::string_view source);

}  // namespace sluice::text::jinja
