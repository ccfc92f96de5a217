#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::text::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<std::unique_ptr<Statement>>;

/// Where a variable lives: `hops` functions outwards, then a slot of that function's activation.
struct Reference {
  int hops = 0;
  int slot = -1;
};

/// What fills a slot when a scope is entered.
struct Load {
  enum class Kind : uint8_t { kParameter, kResolve, kAlias, kUndefined };
  int slot = -1;
  Kind kind = Kind::kUndefined;
  std::string name;  // of kResolve: looked up among the variables given to the template
  Reference from;    // of kAlias
};

/// A stretch of template with variables of its own. Filled by bind().
using Scope = std::vector<Load>;

enum class ExpressionKind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kFloat,
  kString,  // literals
  kName,
  kNamespaceReference,  // text; text and attribute
  kTuple,
  kList,
  kDict,  // children; a dict's are key, value, key, ...
  kAttribute,
  kItem,
  kSlice,  // [object]; [object, index]; [start, stop, step], each may be null
  kCall,
  kFilter,
  kTest,         // [object or null], positional, named
  kConditional,  // [test, then, else or null]
  kAnd,
  kOr,
  kNot,
  kNegate,
  kPlus,  //
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcatenate,
  kCompare,  // children: the operands; operators: between them
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kNone;
  int line = 0;
  int height = 1;      // of the tree below
  int constant = -1;   // of kString: its number among the strings of the template
  Reference variable;  // of kName, kNamespaceReference
  int64_t integer = 0;
  double real = 0;
  std::string text;       // string, name, attribute, filter, test
  std::string attribute;  // of kNamespaceReference
  std::vector<ExpressionPtr> children;
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star, double_star;  // f(*star, **double_star)
  std::vector<std::string> operators;
};

enum class StatementKind : uint8_t {
  kText,
  kPrint,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kGeneration,
  kBreak,
  kContinue,
};

/// The body of a macro, a call block, a generation block or a recursive loop: what gets slots of its own.
struct FunctionLayout {
  int slots = 0;
};

struct Branch {
  int line = 0;
  ExpressionPtr test;
  Body body;
};

struct Parameter {
  std::string name;
  int slot = -1;
  ExpressionPtr fallback;
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 0;
  std::string text;                    // of kText; the name of a macro
  std::vector<ExpressionPtr> values;   // to print; of kWith: what is assigned
  ExpressionPtr target;                // of kSet, kSetBlock, kFor
  std::vector<ExpressionPtr> targets;  // of kWith
  ExpressionPtr value;  // of kSet, kFor (what to loop over), kCallBlock (the call), kFilterBlock, kSetBlock (filter or null)
  Body body;
  Scope scope;  // of body

  std::vector<Branch> branches;  // of kIf; without a test: else

  ExpressionPtr test;         // of kFor: `for x in y if test`
  ExpressionPtr test_target;  // of kFor: the target once more, for the scope of the test
  Scope test_scope;
  Body otherwise;  // of kFor: the else part
  Scope otherwise_scope;
  bool recursive = false;
  int loop_slot = -1;  // of kFor, when the body uses `loop`

  std::vector<Parameter> parameters;  // of kMacro, kCallBlock
  Reference variable;                 // of kMacro: where it is stored
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;
  bool has_caller_parameter = false;
  FunctionLayout function;  // of kMacro, kCallBlock, kGeneration, recursive kFor
};

struct Tree {
  Body body;
  Scope scope;
  FunctionLayout function;
  int strings = 0;  // how many string constants there are
  bool has_generation = false;
};

}  // namespace sluice::text::jinja
