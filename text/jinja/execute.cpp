#include "text/jinja/convert.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/loop.h"
#include "text/jinja/macro.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {

class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter) : interpreter_(interpreter), outer_(interpreter.out_) { interpreter.out_ = &text_; }
  ~Capture() { interpreter_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Value take() { return make_string(interpreter_.sandbox_, std::move(text_)); }

 private:
  Interpreter& interpreter_;
  std::string* outer_;
  std::string text_;
};

class Interpreter::Call {
 public:
  Call(Interpreter& interpreter, const FunctionLayout& function, const Value& closure) : interpreter_(interpreter) {
    Value activation = Value::make<Activation>(interpreter.sandbox_, function.slots, closure);
    caller_ = std::move(interpreter.activation_);
    interpreter.activation_ = std::move(activation);
  }
  ~Call() { interpreter_.activation_ = std::move(caller_); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Value& slot(int index) { return interpreter_.activation_.as<Activation>().slots[static_cast<size_t>(index)]; }

 private:
  Interpreter& interpreter_;
  Value caller_;
};

class Interpreter::Within {
 public:
  Within(Interpreter& interpreter, const Value& activation)
      : interpreter_(interpreter), current_(std::exchange(interpreter.activation_, activation)) {}
  ~Within() { interpreter_.activation_ = std::move(current_); }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Interpreter& interpreter_;
  Value current_;
};

Interpreter::Interpreter(const Tree& tree, Sandbox& sandbox, Value variables, std::optional<std::tm> now)
    : tree_(tree),
      sandbox_(sandbox),
      variables_(std::move(variables)),
      globals_(make_globals(sandbox)),
      now_(now),
      strings_(static_cast<size_t>(tree.strings)) {}

std::tm Interpreter::now() const {
  if (now_) return *now_;
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

std::string Interpreter::run() {
  activation_ = Value::make<Activation>(sandbox_, tree_.function.slots, Value());
  enter(tree_.scope);
  execute(tree_.body);
  return std::move(text_);
}

void Interpreter::enter(const Scope& scope) {
  for (const Load& load : scope) {
    sandbox_.spend();
    Value value;
    if (load.kind == Load::Kind::kAlias) value = slot(load.from);
    if (load.kind == Load::Kind::kResolve) {
      if (const Value* found = find_variable(load.name)) value = *found;
    }
    slot({.hops = 0, .slot = load.slot}) = std::move(value);
  }
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const auto& statement : body) {
    const Flow flow = execute(*statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  const Nesting nesting(sandbox_);
  sandbox_.spend();
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::kText:
      sandbox_.written(statement.text.size());
      *out_ += statement.text;
      return Flow::kNext;
    case StatementKind::kPrint:
      for (const auto& value : statement.values) write(evaluate(*value));
      return Flow::kNext;
    case StatementKind::kFor:
      return execute_for(statement);
    case StatementKind::kIf:
      return execute_if(statement);
    case StatementKind::kSet:
      execute_set(statement);
      return Flow::kNext;
    case StatementKind::kSetBlock:
      return execute_set_block(statement);
    case StatementKind::kMacro:
      execute_macro(statement);
      return Flow::kNext;
    case StatementKind::kCallBlock:
      execute_call_block(statement);
      return Flow::kNext;
    case StatementKind::kFilterBlock:
      return execute_filter_block(statement);
    case StatementKind::kWith:
      return execute_with(statement);
    case StatementKind::kGeneration:
      execute_generation(statement);
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

void Interpreter::write(const Value& value) {
  const size_t before = out_->size();
  if (value.is_string()) sandbox_.written(value.text().size());
  append_text(sandbox_, value, *out_);
  if (!value.is_string()) sandbox_.written(out_->size() - before);
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (!branch.test || truthy(evaluate(*branch.test))) return execute(branch.body);
  }
  return Flow::kNext;
}

void Interpreter::execute_set(const Statement& statement) {
  // The reference looks at the targets first: only a namespace has attributes to set.
  const auto check = [&](const Expression& target) {
    if (target.kind != ExpressionKind::kNamespaceReference || slot(target.variable).is(Kind::kNamespace)) return;
    throw Failure("'" + target.text + "' is no namespace, so its attribute '" + target.attribute + "' cannot be set");
  };
  check(*statement.target);
  for (const auto& item : statement.target->children) check(*item);
  const Value value = evaluate(*statement.value);
  line_ = statement.line;
  assign(*statement.target, value);
}

void Interpreter::assign(const Expression& target, const Value& value) {
  if (target.kind == ExpressionKind::kName) {
    slot(target.variable) = value;
    return;
  }
  if (target.kind == ExpressionKind::kNamespaceReference) {
    const Value space = slot(target.variable);
    if (!space.is(Kind::kNamespace))
      throw Failure("'" + target.text + "' is no namespace, so its attribute '" + target.attribute + "' cannot be set");
    if (target.attribute.starts_with('_'))
      throw Failure("attributes of a namespace do not begin with an underscore, as '" + target.attribute + "' does");
    space.as<Namespace>().attributes.as<Dict>().set(sandbox_, make_string(sandbox_, target.attribute), value);
    return;
  }
  if (!is_iterable(value))
    throw Failure(with_article(value) + " cannot be unpacked into " + std::to_string(target.children.size()) + " variables");
  std::vector<Value> parts;
  for_each(sandbox_, value, [&](const Value& part) {
    parts.push_back(part);
    return parts.size() <= target.children.size();
  });
  if (parts.size() != target.children.size()) {
    throw Failure((parts.size() > target.children.size() ? "more than " : "only ") +
                  std::to_string(std::min(parts.size(), target.children.size())) + " values to unpack, expected " +
                  std::to_string(target.children.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) assign(*target.children[i], parts[i]);
}

// ---- for
// ---------------------------------------------------------------------------------------------------------------------------

Interpreter::Flow Interpreter::execute_for(const Statement& statement) {
  const Value over = evaluate(*statement.value);
  line_ = statement.line;
  if (!statement.recursive) return run_loop(statement, over, 0, nullptr);
  // A recursive loop is a function: its body may call it for what is nested.
  const Value closure = activation_;
  Recursion recursion;
  recursion = [&](const Value& items, int64_t depth) {
    const Nesting nesting(sandbox_);
    const Call call(*this, statement.function, closure);
    Capture capture(*this);
    run_loop(statement, items, depth, &recursion);
    return capture.take();
  };
  write(recursion(over, 0));
  return Flow::kNext;
}

// What was taken apart into several variables is seen as a tuple of them from then on.
Value Interpreter::unpacked(const Expression& target, const Value& element) {
  if (target.kind != ExpressionKind::kTuple) return target.kind == ExpressionKind::kName ? slot(target.variable) : element;
  std::vector<Value> parts;
  for (const auto& part : target.children) parts.push_back(unpacked(*part, element));
  return make_tuple(sandbox_, std::move(parts));
}

// The elements that the loop sees: those of `over` that pass the test of the for tag. They are drawn one by one.
Value Interpreter::make_loop(const Statement& statement, const Value& over, int64_t depth) {
  const auto cursor = std::make_shared<Cursor>(sandbox_, over);
  std::function<bool(Value&)> next = [cursor](Value& element) { return cursor->next(element); };
  const int64_t length = statement.test ? -1 : over.is(Kind::kIterator) ? -1 : length_of(over);
  if (statement.test) {
    // A macro that is given the loop variable may ask for the next element: the test belongs to where the loop stands.
    next = [this, cursor, &statement, activation = activation_, entered = false](Value& element) mutable {
      const Within within(*this, activation);
      if (!entered) enter(statement.test_scope);
      entered = true;
      while (cursor->next(element)) {
        assign(*statement.test_target, element);
        if (!truthy(evaluate(*statement.test))) continue;
        element = unpacked(*statement.test_target, element);
        return true;
      }
      return false;
    };
  }
  return Value::make<Loop>(sandbox_, sandbox_, std::move(next), length, depth);
}

Interpreter::Flow Interpreter::run_loop(const Statement& statement, const Value& over, int64_t depth,
                                        const Recursion* recursion) {
  const Value value = make_loop(statement, over, depth);
  auto& loop = value.as<Loop>();
  if (recursion) loop.recurse = [recursion, depth](const Value& items) { return (*recursion)(items, depth + 1); };
  struct End {
    Loop& loop;
    ~End() { loop.finish(); }
  } const end{loop};

  // As in the reference the else part runs unless some pass came to its end: one that was broken off does not count.
  bool completed = false;
  Value element;
  while (loop.advance(element)) {
    assign(*statement.target, element);
    if (statement.loop_slot >= 0) slot({.hops = 0, .slot = statement.loop_slot}) = value;
    enter(statement.scope);
    const Flow flow = execute(statement.body);
    line_ = statement.line;
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
  }
  if (completed || statement.otherwise.empty()) return Flow::kNext;
  enter(statement.otherwise_scope);
  return execute(statement.otherwise);
}

// ---- blocks
// ------------------------------------------------------------------------------------------------------------------------

Interpreter::Flow Interpreter::execute_set_block(const Statement& statement) {
  enter(statement.scope);
  Value text;
  {
    Capture capture(*this);
    const Flow flow = execute(statement.body);
    if (flow != Flow::kNext) return flow;  // what was written is lost with the block
    text = capture.take();
  }
  if (statement.value) text = filter_chain(*statement.value, text);
  assign(*statement.target, text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_filter_block(const Statement& statement) {
  enter(statement.scope);
  Value text;
  {
    Capture capture(*this);
    const Flow flow = execute(statement.body);
    if (flow != Flow::kNext) return flow;
    text = capture.take();
  }
  write(filter_chain(*statement.value, text));
  return Flow::kNext;
}

// The innermost filter of a chain has no expression of its own: it takes the block's text.
Value Interpreter::filter_chain(const Expression& filter, const Value& text) {
  const Expression* inner = filter.children[0].get();
  return evaluate_filter(filter, inner ? filter_chain(*inner, text) : text);
}

Interpreter::Flow Interpreter::execute_with(const Statement& statement) {
  enter(statement.scope);
  for (size_t i = 0; i < statement.targets.size(); ++i) assign(*statement.targets[i], evaluate(*statement.values[i]));
  return execute(statement.body);
}

// ---- functions
// -----------------------------------------------------------------------------------------------------------------------

void Interpreter::execute_macro(const Statement& statement) {
  slot(statement.variable) = Value::make<Macro>(sandbox_, statement, activation_);
}

void Interpreter::execute_call_block(const Statement& statement) {
  const Value caller = Value::make<Macro>(sandbox_, statement, activation_);
  write(evaluate_call(*statement.value, &caller));
}

void Interpreter::execute_generation(const Statement& statement) {
  Arguments none;
  const Value text = run_macro(statement, activation_, none);
  generations_.push_back({text_.size(), text.as<String>().length});
  write(text);
}

Value Interpreter::run_macro(const Statement& definition, const Value& closure, Arguments& arguments) {
  const Nesting nesting(sandbox_);
  Call call(*this, definition.function, closure);
  bind_arguments(sandbox_, definition, arguments, [&](int index) -> Value& { return call.slot(index); });
  Capture capture(*this);
  enter(definition.scope);
  for (const Parameter& parameter : definition.parameters) {
    if (!call.slot(parameter.slot).is_missing()) continue;
    Value value = parameter.fallback ? evaluate(*parameter.fallback)
                                     : make_undefined(sandbox_, "the parameter '" + parameter.name + "' was not given");
    call.slot(parameter.slot) = std::move(value);
  }
  execute(definition.body);
  return capture.take();
}

}  // namespace sluice::text::jinja
