#include "nodes/rollout/environments/arithmetic.h"

#include <limits>

namespace sluice::nodes {
namespace {

constexpr int kDeepest = 100;

using Value = std::optional<int64_t>;

Value calculated(int64_t a, char operation, int64_t b) {
  int64_t result = 0;
  switch (operation) {
    case '+':
      return __builtin_add_overflow(a, b, &result) ? Value() : result;
    case '-':
      return __builtin_sub_overflow(a, b, &result) ? Value() : result;
    case '*':
      return __builtin_mul_overflow(a, b, &result) ? Value() : result;
    default:
      if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1) || a % b != 0) return {};
      return a / b;
  }
}

// sum = product {(+|-) product}, product = factor {(*|/) factor}, factor = number | ( sum ) | (+|-) factor
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value whole() {
    const Value value = sum();
    return next() == '\0' && at_ == text_.size() ? value : Value();
  }

 private:
  Value sum() {
    Value value = product();
    for (char c = next(); value && (c == '+' || c == '-'); c = next()) value = combined(*value, &Parser::product);
    return value;
  }

  Value product() {
    Value value = factor();
    for (char c = next(); value && (c == '*' || c == '/'); c = next()) value = combined(*value, &Parser::factor);
    return value;
  }

  Value combined(int64_t left, Value (Parser::*operand)()) {
    const char operation = text_[at_++];
    const Value right = (this->*operand)();
    return right ? calculated(left, operation, *right) : Value();
  }

  Value factor() {
    if (depth_ == kDeepest) return {};
    ++depth_;
    const Value value = nested();
    --depth_;
    return value;
  }

  Value nested() {
    const char c = next();
    if (c == '-' || c == '+') {
      ++at_;
      const Value value = factor();
      return value && c == '-' ? calculated(0, '-', *value) : value;
    }
    if (c != '(') return number();
    ++at_;
    const Value value = sum();
    if (!value || next() != ')') return {};
    ++at_;
    return value;
  }

  Value number() {
    const size_t begin = at_;
    Value value = 0;
    for (; value && at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      value = calculated(*value, '*', 10);
      if (value) value = calculated(*value, '+', text_[at_] - '0');
    }
    return at_ > begin ? value : Value();
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // The next character that is no blank; 0 at the end.
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<int64_t> evaluate(std::string_view expression) { return Parser(expression).whole(); }

}  // namespace sluice::nodes
