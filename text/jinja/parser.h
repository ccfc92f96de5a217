#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace sluice::text::jinja {

/// How deep tags and expressions of a template may nest. The trees are walked recursively.
constexpr int kDeepestTemplate = 200;

/// The most named arguments of a call and parameters of a macro: each is compared with each.
constexpr size_t kMostNames = 1000;

/// What stands where parse_tuple() is called.
struct TupleForm {
  bool conditional = true;      // `a if b else c` may be in it
  const char* end = nullptr;    // a name that also ends it
  bool in_parentheses = false;  // it may be empty
};

/// What stands where parse_target() is called.
struct TargetForm {
  const char* end = nullptr;  // a name that also ends it
  bool attributes = false;    // namespace.attribute may be assigned to
};

/// Expressions, in the grammar and precedence of Jinja.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExpressionPtr parse_expression();
  /// One expression, or several with commas between them: a tuple.
  ExpressionPtr parse_tuple(const TupleForm& form = {});
  /// What can be assigned to: a variable, or several.
  ExpressionPtr parse_target(const TargetForm& form = {});
  /// The filter at whose name the stream stands.
  ExpressionPtr parse_filter(ExpressionPtr on);
  /// `| name | name`: those that there are.
  ExpressionPtr parse_filters(ExpressionPtr on);

  int strings() const { return strings_; }

 private:
  class Level;
  ExpressionPtr parse_unconditional();
  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary();
  ExpressionPtr parse_signed();
  ExpressionPtr parse_primary();
  static ExpressionPtr name_or_constant(const Token& token);
  ExpressionPtr parse_variable(const TargetForm& form);
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
