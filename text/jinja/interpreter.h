#pragma once

#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/callable.h"
#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// The variables of a running function (or of the template itself).
struct Activation final : Object {
  Activation(int count, Value outer_activation) : slots(static_cast<size_t>(count)), outer(std::move(outer_activation)) {}
  Kind kind() const { return Kind::kActivation; }
  size_t extra_bytes() const { return slots.size() * sizeof(Value); }
  void clear() override {
    slots.clear();
    outer = Value();
  }
  std::vector<Value> slots;
  Value outer;  // missing at the top
};

/// Runs a tree once.
class Interpreter {
 public:
  /// What a {% generation %} block covers: from byte `begin` of the text on, so many characters.
  struct Generation {
    size_t begin = 0;
    size_t characters = 0;
  };

  /// `variables`: a Dict, what the template can name. `now`: what strftime_now prints; nothing: the clock's local time.
  Interpreter(const Tree& tree, Sandbox& sandbox, Value variables, std::optional<std::tm> now);

  /// Throws Failure; line() is where then.
  std::string run();
  int line() const { return line_; }
  const std::vector<Generation>& generations() const { return generations_; }

  Sandbox& sandbox() { return sandbox_; }
  std::tm now() const;

  /// callee(...)
  Value call(const Value& callee, Arguments& arguments);
  Value apply_filter(std::string_view name, const Value& subject, Arguments& arguments);
  Value apply_test(std::string_view name, const Value& subject, Arguments& arguments);

  /// The text of a macro's or call block's body. `closure`: the activation that it was defined in.
  Value run_macro(const Statement& definition, const Value& closure, Arguments& arguments);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // statements (execute.cpp)
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  Flow execute_for(const Statement& statement);
  using Recursion = std::function<Value(const Value& over, int64_t depth)>;
  Flow run_loop(const Statement& statement, const Value& over, int64_t depth, const Recursion* recursion);
  Value make_loop(const Statement& statement, const Value& over, int64_t depth);
  Value unpacked(const Expression& target, const Value& element);
  void execute_set(const Statement& statement);
  void execute_macro(const Statement& statement);
  void execute_call_block(const Statement& statement);
  Flow execute_filter_block(const Statement& statement);
  Flow execute_set_block(const Statement& statement);
  Flow execute_with(const Statement& statement);
  void execute_generation(const Statement& statement);
  Value filter_chain(const Expression& filter, const Value& text);
  void enter(const Scope& scope);
  void assign(const Expression& target, const Value& value);
  void write(const Value& value);

  // expressions (evaluate.cpp)
  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_items(const Expression& expression, Kind kind);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_item(const Expression& expression);
  Value evaluate_conditional(const Expression& expression);
  Value evaluate_binary(const Expression& expression);
  Value evaluate_compare(const Expression& expression);
  Value evaluate_concatenation(const Expression& expression);
  Value evaluate_filter(const Expression& expression, const Value& subject);
  Value evaluate_test(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Value* caller);
  Arguments evaluate_arguments(const Expression& expression);
  const Value& string_constant(const Expression& expression);

  Value& slot(const Reference& reference);
  const Value* find_variable(const std::string& name);

  // Output goes to a buffer of its own while this lives.
  class Capture;
  // A new call's variables are the current ones while this lives.
  class Call;
  // An older call's are.
  class Within;

  const Tree& tree_;
  Sandbox& sandbox_;
  Value variables_;
  Value globals_;
  std::optional<std::tm> now_;
  std::vector<Value> strings_;  // the constants of the tree, made at first use
  Value activation_;
  std::string text_;
  std::string* out_ = &text_;
  std::vector<Generation> generations_;
  int line_ = 0;
};

/// The functions that every template can call: range, dict, namespace, ... as a Dict.
Value make_globals(Sandbox& sandbox);

}  // namespace sluice::text::jinja
