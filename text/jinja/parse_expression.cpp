#include <algorithm>
#include <array>

#include "text/jinja/parser.h"

namespace sluice::text::jinja {

// One level of brackets or of a prefix operator.
class ExpressionParser::Level {
 public:
  explicit Level(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ <= kDeepestTemplate) return;
    --parser_.depth_;
    parser_.stream_.fail("the expression nests deeper than " + std::to_string(kDeepestTemplate) + " levels");
  }
  ~Level() { --parser_.depth_; }

 private:
  ExpressionParser& parser_;
};

ExpressionPtr ExpressionParser::leaf(ExpressionKind kind, int line) {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->line = line;
  return expression;
}

template <class... Children>
ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line, Children... children) {
  ExpressionPtr expression = leaf(kind, line);
  (adopt(*expression, std::move(children)), ...);
  return expression;
}

void ExpressionParser::raise(Expression& parent, const Expression* child) {
  if (child) parent.height = std::max(parent.height, child->height + 1);
  if (parent.height > kDeepestTemplate)
    stream_.fail("the expression has more than " + std::to_string(kDeepestTemplate) + " operators in a row");
}

void ExpressionParser::adopt(Expression& parent, ExpressionPtr child) {
  raise(parent, child.get());
  parent.children.push_back(std::move(child));
}

ExpressionPtr ExpressionParser::parse_expression() {
  const Level level(*this);
  return parse_conditional();
}

ExpressionPtr ExpressionParser::parse_unconditional() {
  const Level level(*this);
  return parse_or();
}

ExpressionPtr ExpressionParser::parse_conditional() {
  int line = stream_.current().line;
  ExpressionPtr value = parse_or();
  while (stream_.skip_name("if")) {
    const Level level(*this);
    ExpressionPtr test = parse_or();
    ExpressionPtr otherwise = stream_.skip_name("else") ? parse_conditional() : nullptr;
    value = make(ExpressionKind::kConditional, line, std::move(test), std::move(value), std::move(otherwise));
    line = stream_.current().line;
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  const int line = stream_.current().line;
  ExpressionPtr left = parse_and();
  while (stream_.skip_name("or")) {
    ExpressionPtr right = parse_and();
    left = make(ExpressionKind::kOr, line, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  const int line = stream_.current().line;
  ExpressionPtr left = parse_not();
  while (stream_.skip_name("and")) {
    ExpressionPtr right = parse_not();
    left = make(ExpressionKind::kAnd, line, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  const int line = stream_.current().line;
  if (!stream_.skip_name("not")) return parse_compare();
  const Level level(*this);
  return make(ExpressionKind::kNot, line, parse_not());
}

ExpressionPtr ExpressionParser::parse_compare() {
  const int line = stream_.current().line;
  ExpressionPtr first = parse_sum();
  ExpressionPtr comparison;
  const auto add = [&](std::string symbol) {
    if (!comparison) comparison = make(ExpressionKind::kCompare, line, std::move(first));
    comparison->operators.push_back(std::move(symbol));
    adopt(*comparison, parse_sum());
  };
  constexpr std::array<std::string_view, 6> kSymbols = {"==", "!=", "<", "<=", ">", ">="};
  while (true) {
    const Token& token = stream_.current();
    if (token.is(TokenType::kOperator) && std::find(kSymbols.begin(), kSymbols.end(), token.text) != kSymbols.end()) {
      add(stream_.next().text);
    } else if (stream_.skip_name("in")) {
      add("in");
    } else if (token.is_name("not") && stream_.look().is_name("in")) {
      stream_.next();
      stream_.next();
      add("not in");
    } else {
      return comparison ? std::move(comparison) : std::move(first);
    }
  }
}

ExpressionPtr ExpressionParser::parse_sum() {
  const int line = stream_.current().line;
  ExpressionPtr left = parse_concatenation();
  while (stream_.current().is_operator("+") || stream_.current().is_operator("-")) {
    const ExpressionKind kind = stream_.next().text == "+" ? ExpressionKind::kAdd : ExpressionKind::kSubtract;
    ExpressionPtr right = parse_concatenation();
    left = make(kind, line, std::move(left), std::move(right));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const int line = stream_.current().line;
  ExpressionPtr first = parse_product();
  if (!stream_.current().is_operator("~")) return first;
  ExpressionPtr all = make(ExpressionKind::kConcatenate, line, std::move(first));
  while (stream_.skip_operator("~")) adopt(*all, parse_product());
  return all;
}

ExpressionPtr ExpressionParser::parse_product() {
  const int line = stream_.current().line;
  ExpressionPtr left = parse_power();
  while (true) {
    const Token& token = stream_.current();
    const ExpressionKind kind = token.is_operator("*")    ? ExpressionKind::kMultiply
                                : token.is_operator("/")  ? ExpressionKind::kDivide
                                : token.is_operator("//") ? ExpressionKind::kFloorDivide
                                : token.is_operator("%")  ? ExpressionKind::kModulo
                                                          : ExpressionKind::kNone;
    if (kind == ExpressionKind::kNone) return left;
    stream_.next();
    ExpressionPtr right = parse_power();
    left = make(kind, line, std::move(left), std::move(right));
  }
}

ExpressionPtr ExpressionParser::parse_power() {
  const int line = stream_.current().line;
  ExpressionPtr left = parse_unary();
  while (stream_.skip_operator("**")) {
    ExpressionPtr right = parse_unary();
    left = make(ExpressionKind::kPower, line, std::move(left), std::move(right));
  }
  return left;
}

// Filters and tests are of all that the signs in front belong to.
ExpressionPtr ExpressionParser::parse_unary() {
  const Level level(*this);
  return parse_filter_or_test(parse_signed());
}

ExpressionPtr ExpressionParser::parse_signed() {
  const int line = stream_.current().line;
  const bool minus = stream_.skip_operator("-");
  ExpressionPtr value;
  if (minus || stream_.skip_operator("+")) {
    const Level level(*this);
    value = make(minus ? ExpressionKind::kNegate : ExpressionKind::kPlus, line, parse_signed());
  } else {
    value = parse_primary();
  }
  return parse_postfix(std::move(value));
}

ExpressionPtr ExpressionParser::name_or_constant(const Token& token) {
  const std::string& name = token.text;
  if (name == "none" || name == "None") return leaf(ExpressionKind::kNone, token.line);
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    ExpressionPtr value = leaf(ExpressionKind::kBool, token.line);
    value->integer = name[0] == 't' || name[0] == 'T' ? 1 : 0;
    return value;
  }
  ExpressionPtr value = leaf(ExpressionKind::kName, token.line);
  value->text = name;
  return value;
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token token = stream_.current();
  if (token.is_operator("[")) return parse_list();
  if (token.is_operator("{")) return parse_dict();
  stream_.next();
  ExpressionPtr value;
  if (token.is(TokenType::kName)) {
    value = name_or_constant(token);
  } else if (token.is(TokenType::kString)) {
    value = make(ExpressionKind::kString, token.line);
    value->text = token.text;
    while (stream_.current().is(TokenType::kString)) value->text += stream_.next().text;
    value->constant = strings_++;
  } else if (token.is(TokenType::kInteger)) {
    value = make(ExpressionKind::kInteger, token.line);
    value->integer = token.integer;
  } else if (token.is(TokenType::kFloat)) {
    value = make(ExpressionKind::kFloat, token.line);
    value->real = token.real;
  } else if (token.is_operator("(")) {
    value = parse_tuple({.in_parentheses = true});
    stream_.expect_operator(")");
  } else {
    stream_.fail("expected an expression, not " + describe(token), token.line);
  }
  return value;
}

bool ExpressionParser::is_tuple_end(const char* end) const {
  const Token& token = stream_.current();
  return token.is(TokenType::kVariableEnd) || token.is(TokenType::kBlockEnd) || token.is_operator(")") ||
         (end && token.is_name(end));
}

ExpressionPtr ExpressionParser::parse_tuple(const TupleForm& form) {
  const int line = stream_.current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) stream_.expect_operator(",");
    if (is_tuple_end(form.end)) break;
    items.push_back(form.conditional ? parse_expression() : parse_unconditional());
    if (!stream_.current().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !form.in_parentheses) stream_.fail("expected an expression, not " + describe(stream_.current()));
  ExpressionPtr tuple = make(ExpressionKind::kTuple, line);
  for (ExpressionPtr& item : items) adopt(*tuple, std::move(item));
  return tuple;
}

namespace {

bool is_assignable(const Expression& target) {
  if (target.kind == ExpressionKind::kName || target.kind == ExpressionKind::kNamespaceReference) return true;
  if (target.kind != ExpressionKind::kTuple) return false;
  return std::all_of(target.children.begin(), target.children.end(),
                     [](const ExpressionPtr& item) { return is_assignable(*item); });
}

}  // namespace

ExpressionPtr ExpressionParser::parse_variable(const TargetForm& form) {
  const bool begins_with_name = stream_.current().is(TokenType::kName);
  ExpressionPtr variable = parse_primary();
  const bool may_have_attribute = form.attributes && begins_with_name && variable->kind == ExpressionKind::kName;
  if (!may_have_attribute || !stream_.skip_operator(".")) return variable;
  variable->kind = ExpressionKind::kNamespaceReference;
  variable->attribute = stream_.expect(TokenType::kName, "the name of an attribute").text;
  return variable;
}

ExpressionPtr ExpressionParser::parse_target(const TargetForm& form) {
  const int line = stream_.current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) stream_.expect_operator(",");
    if (is_tuple_end(form.end)) break;
    items.push_back(parse_variable(form));
    if (!stream_.current().is_operator(",")) break;
    is_tuple = true;
  }
  if (items.empty()) stream_.fail("expected a variable to assign to, not " + describe(stream_.current()));
  ExpressionPtr target;
  if (is_tuple) {
    target = make(ExpressionKind::kTuple, line);
    for (ExpressionPtr& item : items) adopt(*target, std::move(item));
  } else {
    target = std::move(items[0]);
  }
  if (!is_assignable(*target)) stream_.fail("this cannot be assigned to; expected a variable", line);
  return target;
}

ExpressionPtr ExpressionParser::parse_list() {
  ExpressionPtr list = make(ExpressionKind::kList, stream_.next().line);
  while (!stream_.current().is_operator("]")) {
    if (!list->children.empty()) stream_.expect_operator(",");
    if (stream_.current().is_operator("]")) break;
    adopt(*list, parse_expression());
  }
  stream_.expect_operator("]");
  return list;
}

ExpressionPtr ExpressionParser::parse_dict() {
  ExpressionPtr dict = make(ExpressionKind::kDict, stream_.next().line);
  while (!stream_.current().is_operator("}")) {
    if (!dict->children.empty()) stream_.expect_operator(",");
    if (stream_.current().is_operator("}")) break;
    adopt(*dict, parse_expression());
    stream_.expect_operator(":");
    adopt(*dict, parse_expression());
  }
  stream_.expect_operator("}");
  return dict;
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr value) {
  while (true) {
    const Token& token = stream_.current();
    if (token.is_operator(".") || token.is_operator("[")) {
      value = parse_subscript(std::move(value));
    } else if (token.is_operator("(")) {
      value = parse_call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filter_or_test(ExpressionPtr value) {
  while (true) {
    const Token& token = stream_.current();
    if (token.is_operator("|")) {
      value = parse_filters(std::move(value));
    } else if (token.is_name("is")) {
      value = parse_test(std::move(value));
    } else if (token.is_operator("(")) {
      value = parse_call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr value) {
  const Token token = stream_.next();
  if (token.text == ".") {
    const Token name = stream_.next();
    if (name.is(TokenType::kName)) {
      ExpressionPtr attribute = make(ExpressionKind::kAttribute, token.line, std::move(value));
      attribute->text = name.text;
      return attribute;
    }
    if (!name.is(TokenType::kInteger)) stream_.fail("expected a name or a number behind '.', not " + describe(name), name.line);
    ExpressionPtr index = make(ExpressionKind::kInteger, name.line);
    index->integer = name.integer;
    return make(ExpressionKind::kItem, token.line, std::move(value), std::move(index));
  }
  std::vector<ExpressionPtr> indices;
  while (!stream_.current().is_operator("]")) {
    if (!indices.empty()) stream_.expect_operator(",");
    indices.push_back(parse_index());
  }
  stream_.expect_operator("]");
  if (indices.size() == 1) return make(ExpressionKind::kItem, token.line, std::move(value), std::move(indices[0]));
  ExpressionPtr tuple = make(ExpressionKind::kTuple, token.line);
  for (ExpressionPtr& index : indices) {
    if (index->kind == ExpressionKind::kSlice) stream_.fail("a slice cannot stand among several indices");
    adopt(*tuple, std::move(index));
  }
  return make(ExpressionKind::kItem, token.line, std::move(value), std::move(tuple));
}

ExpressionPtr ExpressionParser::parse_index() {
  const int line = stream_.current().line;
  const auto part = [&]() -> ExpressionPtr {
    const Token& token = stream_.current();
    const bool absent = token.is_operator(":") || token.is_operator("]") || token.is_operator(",");
    return absent ? nullptr : parse_expression();
  };
  ExpressionPtr start;
  if (!stream_.current().is_operator(":")) {
    start = parse_expression();
    if (!stream_.current().is_operator(":")) return start;
  }
  stream_.next();
  ExpressionPtr stop = part();
  ExpressionPtr step = stream_.skip_operator(":") ? part() : nullptr;
  return make(ExpressionKind::kSlice, line, std::move(start), std::move(stop), std::move(step));
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr value) {
  ExpressionPtr call = make(ExpressionKind::kCall, stream_.current().line, std::move(value));
  parse_arguments(*call);
  return call;
}

void ExpressionParser::parse_arguments(Expression& call) {
  const int line = stream_.current().line;
  const auto ensure = [&](bool valid) {
    if (!valid) stream_.fail("the arguments of this call are in a wrong order", line);
  };
  stream_.expect_operator("(");
  bool needs_comma = false;
  while (!stream_.current().is_operator(")")) {
    if (needs_comma) stream_.expect_operator(",");
    if (needs_comma && stream_.current().is_operator(")")) break;
    needs_comma = true;
    if (stream_.skip_operator("*")) {
      ensure(!call.star && !call.double_star);
      call.star = parse_expression();
      raise(call, call.star.get());
    } else if (stream_.skip_operator("**")) {
      ensure(!call.double_star);
      call.double_star = parse_expression();
      raise(call, call.double_star.get());
    } else if (stream_.current().is(TokenType::kName) && stream_.look().is_operator("=")) {
      ensure(!call.double_star);
      const std::string name = stream_.next().text;
      stream_.next();
      const bool twice =
          std::any_of(call.named.begin(), call.named.end(), [&](const auto& other) { return other.first == name; });
      if (call.named.size() == kMostNames)
        stream_.fail("a call has more than " + std::to_string(kMostNames) + " named arguments", line);
      if (twice) stream_.fail("the argument '" + name + "' is given twice", line);
      call.named.emplace_back(name, parse_expression());
      raise(call, call.named.back().second.get());
    } else {
      ensure(!call.star && !call.double_star && call.named.empty());
      call.positional.push_back(parse_expression());
      raise(call, call.positional.back().get());
    }
  }
  stream_.expect_operator(")");
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = stream_.expect(TokenType::kName, "a name").text;
  while (stream_.skip_operator(".")) name += "." + stream_.expect(TokenType::kName, "a name").text;
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr value) {
  ExpressionPtr filter = make(ExpressionKind::kFilter, stream_.current().line, std::move(value));
  filter->text = parse_dotted_name();
  if (stream_.current().is_operator("(")) parse_arguments(*filter);
  return filter;
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr value) {
  while (stream_.skip_operator("|")) value = parse_filter(std::move(value));
  return value;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr value) {
  const int line = stream_.next().line;
  const bool negated = stream_.skip_name("not");
  ExpressionPtr test = make(ExpressionKind::kTest, line, std::move(value));
  test->text = parse_dotted_name();
  const Token& token = stream_.current();
  const bool literal = token.is(TokenType::kString) || token.is(TokenType::kInteger) || token.is(TokenType::kFloat) ||
                       token.is_operator("[") || token.is_operator("{");
  const bool name = token.is(TokenType::kName) && token.text != "else" && token.text != "or" && token.text != "and";
  if (token.is_operator("(")) {
    parse_arguments(*test);
  } else if (literal || name) {
    if (token.is_name("is")) stream_.fail("tests cannot be chained with 'is'");
    test->positional.push_back(parse_postfix(parse_primary()));
    raise(*test, test->positional.back().get());
  }
  return negated ? make(ExpressionKind::kNot, line, std::move(test)) : std::move(test);
}

}  // namespace sluice::text::jinja
