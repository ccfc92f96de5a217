#include "text/jinja/bind.h"

#include <algorithm>
#include <functional>
#include <set>

#include "text/jinja/filters.h"
#include "text/jinja/lexer.h"
#include "text/jinja/symbols.h"
#include "text/jinja/test_functions.h"

namespace sluice::text::jinja {
namespace {

// ---- which names an expression or a body mentions
// -------------------------------------------------------------------------------

void visit_children(const Expression& expression, const std::function<void(Expression&)>& visit) {
  for (const auto& child : expression.children) {
    if (child) visit(*child);
  }
  for (const auto& argument : expression.positional) visit(*argument);
  for (const auto& [name, argument] : expression.named) visit(*argument);
  if (expression.star) visit(*expression.star);
  if (expression.double_star) visit(*expression.double_star);
}

void load_names(const Expression& expression, Symbols& symbols) {
  if (expression.kind == ExpressionKind::kName || expression.kind == ExpressionKind::kNamespaceReference)
    symbols.load(expression.text);
  visit_children(expression, [&](Expression& child) { load_names(child, symbols); });
}

void store_names(const Expression& target, Symbols& symbols, bool as_parameter) {
  if (target.kind == ExpressionKind::kNamespaceReference) symbols.load(target.text);
  if (target.kind == ExpressionKind::kName) {
    if (as_parameter)
      symbols.declare_parameter(target.text);
    else
      symbols.store(target.text);
  }
  for (const auto& item : target.children) store_names(*item, symbols, as_parameter);
}

void load_names(const ExpressionPtr& expression, Symbols& symbols) {
  if (expression) load_names(*expression, symbols);
}

void note_names(const Body& body, Symbols& symbols);

void note_if(const Statement& choice, Symbols& symbols) {
  load_names(choice.branches[0].test, symbols);
  // The reference gathers all elif parts in one branch, in which each is merged by itself, and the else part in another.
  Symbols first = symbols.branch(), others = symbols.branch(), otherwise = symbols.branch();
  note_names(choice.branches[0].body, first);
  for (size_t i = 1; i < choice.branches.size(); ++i) {
    const Branch& branch = choice.branches[i];
    if (!branch.test) {
      note_names(branch.body, otherwise);
      continue;
    }
    load_names(branch.test, others);
    Symbols body = others.branch(), nothing = others.branch();
    note_names(branch.body, body);
    others.merge({body, nothing, nothing});
  }
  symbols.merge({first, others, otherwise});
}

// What a statement reads and sets in the scope that it stands in; its body has a scope of its own.
void note_names(const Statement& statement, Symbols& symbols) {
  switch (statement.kind) {
    case StatementKind::kPrint:
    case StatementKind::kWith:
      for (const auto& value : statement.values) load_names(value, symbols);
      return;
    case StatementKind::kFor:
    case StatementKind::kCallBlock:
    case StatementKind::kFilterBlock:
      load_names(statement.value, symbols);
      return;
    case StatementKind::kIf:
      note_if(statement, symbols);
      return;
    case StatementKind::kSet:
      load_names(statement.value, symbols);
      store_names(*statement.target, symbols, false);
      return;
    case StatementKind::kSetBlock:
      store_names(*statement.target, symbols, false);
      return;
    case StatementKind::kMacro:
      symbols.store(statement.text);
      return;
    default:
      return;
  }
}

void note_names(const Body& body, Symbols& symbols) {
  for (const auto& statement : body) note_names(*statement, symbols);
}

// Whether `body` uses one of the special names without having set it before (in the order of the text).
struct Mentions {
  std::set<std::string> watched, found;

  void in(const Expression& expression) {
    if (expression.kind == ExpressionKind::kName && watched.count(expression.text) > 0) found.insert(expression.text);
    visit_children(expression, [&](Expression& child) { in(child); });
  }
  void in(const ExpressionPtr& expression) {
    if (expression) in(*expression);
  }
  void stored(const Expression& target) {
    if (target.kind == ExpressionKind::kName) watched.erase(target.text);
    for (const auto& item : target.children) stored(*item);
  }
  void in(const Body& body) {
    for (const auto& statement : body) in(*statement);
  }
  void in(const Statement& s) {
    if (s.kind == StatementKind::kFor) {
      stored(*s.target);
      in(s.value);
      in(s.body);
      in(s.otherwise);
      in(s.test);
      return;
    }
    if (s.kind == StatementKind::kCallBlock) in(s.value);
    for (const auto& parameter : s.parameters) watched.erase(parameter.name);
    for (const auto& parameter : s.parameters) in(parameter.fallback);
    if (s.kind == StatementKind::kWith) {
      for (const auto& target : s.targets) stored(*target);
    }
    if (s.kind == StatementKind::kSetBlock) stored(*s.target);
    for (const auto& value : s.values) in(value);
    if (s.kind == StatementKind::kSet) {
      stored(*s.target);
      in(s.value);
    } else if (s.kind != StatementKind::kCallBlock) {
      if (s.kind == StatementKind::kFilterBlock) in(s.body);
      in(s.value);
    }
    if (s.kind != StatementKind::kFilterBlock) in(s.body);
    for (const auto& branch : s.branches) {
      in(branch.test);
      in(branch.body);
    }
  }
};

std::set<std::string> mentioned(const Body& body, std::set<std::string> names) {
  Mentions mentions{std::move(names), {}};
  mentions.in(body);
  return mentions.found;
}

// ---- the places
// --------------------------------------------------------------------------------------------------------------------

// Where the binder stands.
struct Frame {
  const Symbols& symbols;
  FunctionLayout& function;
  int depth = 0;      // of functions
  bool soft = false;  // in an if: filters are looked up when they are used
};

class Binder {
 public:
  void template_body(Tree& tree) {
    Symbols symbols(nullptr, tree.function, 0);
    note_names(tree.body, symbols);
    tree.scope = symbols.scope();
    body(tree.body, {symbols, tree.function, 0});
  }

 private:
  void body(Body& statements, const Frame& frame) {
    for (auto& statement : statements) this->statement(*statement, frame);
  }

  void statement(Statement& s, const Frame& frame) {
    for (auto& value : s.values) expression(value, frame);
    switch (s.kind) {
      case StatementKind::kFor:
        return loop(s, frame);
      case StatementKind::kIf:
        return choice(s, frame);
      case StatementKind::kSet:
        expression(s.value, frame);
        target(*s.target, frame);
        return;
      case StatementKind::kSetBlock: {
        Symbols inner(&frame.symbols, frame.function, frame.depth);
        note_names(s.body, inner);
        load_names(s.value, inner);
        s.scope = inner.scope();
        const Frame block{inner, frame.function, frame.depth};
        body(s.body, block);
        target(*s.target, frame);
        expression(s.value, block);
        return;
      }
      case StatementKind::kFilterBlock: {
        Symbols inner(&frame.symbols, frame.function, frame.depth);
        note_names(s.body, inner);
        load_names(s.value, inner);
        s.scope = inner.scope();
        const Frame block{inner, frame.function, frame.depth};
        body(s.body, block);
        expression(s.value, block);
        return;
      }
      case StatementKind::kWith: {
        Symbols inner(&frame.symbols, frame.function, frame.depth);
        for (auto& name : s.targets) store_names(*name, inner, true);
        note_names(s.body, inner);
        s.scope = inner.scope();
        const Frame block{inner, frame.function, frame.depth};
        for (auto& name : s.targets) target(*name, block);
        body(s.body, block);
        return;
      }
      case StatementKind::kMacro:
        function(s, frame);
        s.variable = frame.symbols.reference(s.text, frame.depth);
        return;
      case StatementKind::kCallBlock:
        function(s, frame);
        expression(s.value, frame);
        return;
      case StatementKind::kGeneration:
        return function(s, frame);
      default:
        return;
    }
  }

  void choice(Statement& s, const Frame& frame) {
    const Frame soft{frame.symbols, frame.function, frame.depth, true};
    for (Branch& branch : s.branches) {
      expression(branch.test, soft);
      body(branch.body, soft);
    }
  }

  void loop(Statement& s, const Frame& outer) {
    refuse_loop_as_target(s);
    expression(s.value, outer);
    FunctionLayout& layout = s.recursive ? s.function : outer.function;
    const int depth = outer.depth + (s.recursive ? 1 : 0);

    Symbols symbols(&outer.symbols, layout, depth);
    if (s.recursive || !mentioned(s.body, {"loop"}).empty()) s.loop_slot = symbols.declare_parameter("loop");
    store_names(*s.target, symbols, true);
    note_names(s.body, symbols);
    s.scope = symbols.scope();

    if (s.test) {
      Symbols test_symbols(&outer.symbols, layout, depth);
      store_names(*s.target, test_symbols, true);
      load_names(s.test, test_symbols);
      s.test_scope = test_symbols.scope();
      const Frame test_frame{test_symbols, layout, depth};
      s.test_target = clone_target(*s.target);
      target(*s.test_target, test_frame);
      expression(s.test, test_frame);
    }
    const Frame inner{symbols, layout, depth};
    target(*s.target, inner);
    body(s.body, inner);

    Symbols otherwise(&outer.symbols, layout, depth);
    note_names(s.otherwise, otherwise);
    s.otherwise_scope = otherwise.scope();
    body(s.otherwise, {otherwise, layout, depth});
  }

  static ExpressionPtr clone_target(const Expression& from) {
    auto copy = std::make_unique<Expression>();
    copy->kind = from.kind;
    copy->line = from.line;
    copy->text = from.text;
    for (const auto& item : from.children) copy->children.push_back(clone_target(*item));
    return copy;
  }

  static void refuse_loop_in(const Expression* target) {
    if (!target) return;
    if (target->kind == ExpressionKind::kName && target->text == "loop")
      throw SyntaxFailure{"'loop' cannot be assigned to inside of a for loop", target->line};
    for (const auto& item : target->children) refuse_loop_in(item.get());
  }

  // `loop` is special in the whole for tag.
  static void refuse_loop_as_target(const Statement& s) {
    refuse_loop_in(s.target.get());
    for (const auto& inner : s.body) refuse_loop_as_target(*inner);
    for (const auto& inner : s.otherwise) refuse_loop_as_target(*inner);
    for (const auto& branch : s.branches) {
      for (const auto& inner : branch.body) refuse_loop_as_target(*inner);
    }
  }

  void function(Statement& s, const Frame& outer) {
    const int depth = outer.depth + 1;
    Symbols symbols(&outer.symbols, s.function, depth);
    for (Parameter& parameter : s.parameters) {
      parameter.slot = symbols.declare_parameter(parameter.name);
      s.has_caller_parameter |= parameter.name == "caller";
    }
    for (Parameter& parameter : s.parameters) load_names(parameter.fallback, symbols);
    note_names(s.body, symbols);
    declare_specials(s, symbols);
    s.scope = symbols.scope();
    const Frame inner{symbols, s.function, depth};
    for (Parameter& parameter : s.parameters) expression(parameter.fallback, inner);
    body(s.body, inner);
  }

  static void declare_specials(Statement& s, Symbols& symbols) {
    const std::set<std::string> used = mentioned(s.body, {"caller", "kwargs", "varargs"});
    const auto declared = [&](const char* name) {
      return std::any_of(s.parameters.begin(), s.parameters.end(), [&](const Parameter& p) { return p.name == name; });
    };
    if (used.count("caller") > 0) {
      if (!declared("caller")) {
        s.caller_slot = symbols.declare_parameter("caller");
      } else {
        for (const Parameter& parameter : s.parameters) {
          if (parameter.name == "caller" && !parameter.fallback)
            throw SyntaxFailure{"the parameter 'caller' needs a default", s.line};
        }
      }
    }
    if (used.count("kwargs") > 0 && !declared("kwargs")) s.kwargs_slot = symbols.declare_parameter("kwargs");
    if (used.count("varargs") > 0 && !declared("varargs")) s.varargs_slot = symbols.declare_parameter("varargs");
  }

  void target(Expression& t, const Frame& frame) {
    if (!t.text.empty()) t.variable = frame.symbols.reference(t.text, frame.depth);
    for (auto& item : t.children) target(*item, frame);
  }

  void expression(ExpressionPtr& e, const Frame& frame) {
    if (e) expression(*e, frame);
  }

  void expression(Expression& e, const Frame& frame) {
    if (e.kind == ExpressionKind::kName) e.variable = frame.symbols.reference(e.text, frame.depth);
    if (!frame.soft && e.kind == ExpressionKind::kFilter && !find_filter(e.text))
      throw SyntaxFailure{unknown_filter(e.text), e.line};
    if (!frame.soft && e.kind == ExpressionKind::kTest && !find_test(e.text)) throw SyntaxFailure{unknown_test(e.text), e.line};
    const bool soft = frame.soft || e.kind == ExpressionKind::kConditional;
    const Frame inner{frame.symbols, frame.function, frame.depth, soft};
    visit_children(e, [&](Expression& child) { expression(child, inner); });
  }
};

}  // namespace

void bind(Tree& tree) { Binder().template_body(tree); }

}  // namespace sluice::text::jinja
