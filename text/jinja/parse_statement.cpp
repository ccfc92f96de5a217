#include <algorithm>
#include <array>
#include <iterator>

#include "text/jinja/bind.h"
#include "text/jinja/parser.h"

namespace sluice::text::jinja {
namespace {

using EndTags = std::vector<std::string_view>;

// Tags that Jinja knows and a chat template has no use for: they need other templates, or HTML.
constexpr std::array<std::string_view, 6> kUnsupported = {"block", "extends", "include", "import", "from", "autoescape"};

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens) : stream_(std::move(tokens)), expressions_(stream_) {}

  Tree run() {
    Tree tree;
    tree.body = parse_body({});
    tree.strings = expressions_.strings();
    tree.has_generation = has_generation_;
    return tree;
  }

 private:
  std::unique_ptr<Statement> make(StatementKind kind, int line) {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->line = line;
    return statement;
  }

  static bool is_end(const Token& token, const EndTags& ends) {
    return token.is(TokenType::kName) && std::find(ends.begin(), ends.end(), token.text) != ends.end();
  }

  // Up to one of the tags `ends`, at whose name the stream stands then; to the end of the template when there are none.
  Body parse_body(const EndTags& ends) {
    if (++depth_ > kDeepestTemplate / 2)
      stream_.fail("tags nest deeper than " + std::to_string(kDeepestTemplate / 2) + " levels");
    Body body;
    while (!stream_.current().is(TokenType::kEnd)) {
      const int line = stream_.current().line;
      if (stream_.current().is(TokenType::kData)) {
        auto text = make(StatementKind::kText, line);
        text->text = stream_.next().text;
        body.push_back(std::move(text));
      } else if (stream_.current().is(TokenType::kVariableBegin)) {
        stream_.next();
        auto print = make(StatementKind::kPrint, line);
        print->values.push_back(expressions_.parse_tuple());
        stream_.expect(TokenType::kVariableEnd, "'}}'");
        body.push_back(std::move(print));
      } else {
        stream_.expect(TokenType::kBlockBegin, "'{%'");
        if (is_end(stream_.current(), ends)) {
          --depth_;
          return body;
        }
        body.push_back(parse_statement());
        stream_.expect(TokenType::kBlockEnd, "'%}'");
      }
    }
    if (!ends.empty()) fail_end(ends);
    --depth_;
    return body;
  }

  [[noreturn]] void fail_end(const EndTags& ends) {
    std::string expected;
    for (const std::string_view end : ends) expected += (expected.empty() ? "'" : " or '") + std::string(end) + "'";
    stream_.fail("the template ends, but " + expected + " is missing" +
                 (open_.empty() ? "" : " for '" + open_.back().name + "' of line " + std::to_string(open_.back().line)));
  }

  // The body of a tag: from its %} to the name of the tag that ends it.
  Body parse_block_up_to(const EndTags& ends) {
    stream_.skip_operator(":");
    stream_.expect(TokenType::kBlockEnd, "'%}'");
    return parse_body(ends);
  }

  // Likewise, with that name.
  Body parse_block(std::string_view end) {
    Body body = parse_block_up_to({end});
    stream_.next();
    return body;
  }

  std::unique_ptr<Statement> parse_statement() {
    const Token token = stream_.current();
    if (!token.is(TokenType::kName)) stream_.fail("expected the name of a tag, not " + describe(token));
    open_.push_back({token.text, token.line});
    stream_.next();
    auto statement = parse_tag(token);
    open_.pop_back();
    return statement;
  }

  std::unique_ptr<Statement> parse_tag(const Token& tag) {
    if (tag.text == "for") return parse_for(tag.line);
    if (tag.text == "if") return parse_if(tag.line);
    if (tag.text == "set") return parse_set(tag.line);
    if (tag.text == "macro") return parse_macro(tag.line);
    if (tag.text == "call") return parse_call(tag.line);
    if (tag.text == "filter") return parse_filter(tag.line);
    if (tag.text == "with") return parse_with(tag.line);
    if (tag.text == "print") return parse_print(tag.line);
    if (tag.text == "generation") return parse_generation(tag.line);
    if (tag.text == "break" || tag.text == "continue") return parse_jump(tag);
    if (std::find(kUnsupported.begin(), kUnsupported.end(), tag.text) != kUnsupported.end()) {
      stream_.fail("the tag '" + tag.text + "' is not supported in a chat template", tag.line);
    }
    std::string message = "unknown tag '" + tag.text + "'";
    if (open_.size() > 1)
      message +=
          "; '" + open_[open_.size() - 2].name + "' of line " + std::to_string(open_[open_.size() - 2].line) + " is still open";
    stream_.fail(message, tag.line);
  }

  std::unique_ptr<Statement> parse_for(int line) {
    auto loop = make(StatementKind::kFor, line);
    loop->target = expressions_.parse_target({.end = "in"});
    stream_.expect_name("in");
    loop->value = expressions_.parse_tuple({.conditional = false, .end = "recursive"});
    if (stream_.skip_name("if")) loop->test = expressions_.parse_expression();
    loop->recursive = stream_.skip_name("recursive");
    const int outer_loops = loops_;
    loops_ = loop->recursive ? 1 : loops_ + 1;
    loop->body = parse_block_up_to({"endfor", "else"});
    loops_ = loop->recursive ? 0 : outer_loops;
    if (stream_.next().text == "else") loop->otherwise = parse_block("endfor");
    loops_ = outer_loops;
    return loop;
  }

  std::unique_ptr<Statement> parse_if(int line) {
    auto choice = make(StatementKind::kIf, line);
    while (true) {
      Branch branch;
      branch.line = stream_.current().line;
      branch.test = expressions_.parse_tuple({.conditional = false});
      branch.body = parse_block_up_to({"elif", "else", "endif"});
      choice->branches.push_back(std::move(branch));
      const Token& token = stream_.next();
      if (token.is_name("elif")) continue;
      if (token.is_name("else")) {
        Branch otherwise;
        otherwise.line = token.line;
        otherwise.body = parse_block("endif");
        choice->branches.push_back(std::move(otherwise));
      }
      return choice;
    }
  }

  std::unique_ptr<Statement> parse_set(int line) {
    auto set = make(StatementKind::kSet, line);
    set->target = expressions_.parse_target({.attributes = true});
    if (stream_.skip_operator("=")) {
      set->value = expressions_.parse_tuple();
      return set;
    }
    set->kind = StatementKind::kSetBlock;
    set->value = expressions_.parse_filters(nullptr);
    set->body = parse_block("endset");
    return set;
  }

  void parse_signature(Statement& macro) {
    stream_.expect_operator("(");
    while (!stream_.current().is_operator(")")) {
      if (!macro.parameters.empty()) stream_.expect_operator(",");
      if (macro.parameters.size() == kMostNames)
        stream_.fail("a macro has more than " + std::to_string(kMostNames) + " parameters");
      Parameter parameter;
      parameter.name = stream_.expect(TokenType::kName, "the name of a parameter").text;
      const auto same = [&](const Parameter& other) { return other.name == parameter.name; };
      if (std::any_of(macro.parameters.begin(), macro.parameters.end(), same))
        stream_.fail("the parameter '" + parameter.name + "' is declared twice");
      if (stream_.skip_operator("=")) {
        parameter.fallback = expressions_.parse_expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
        stream_.fail("the parameter '" + parameter.name + "' without a default follows one with a default");
      }
      macro.parameters.push_back(std::move(parameter));
    }
    stream_.expect_operator(")");
  }

  // A loop outside cannot be left from the body of a function.
  Body parse_function_body(std::string_view end) {
    const int outer_loops = loops_;
    loops_ = 0;
    Body body = parse_block(end);
    loops_ = outer_loops;
    return body;
  }

  std::unique_ptr<Statement> parse_macro(int line) {
    auto macro = make(StatementKind::kMacro, line);
    macro->text = stream_.expect(TokenType::kName, "the name of the macro").text;
    parse_signature(*macro);
    macro->body = parse_function_body("endmacro");
    return macro;
  }

  std::unique_ptr<Statement> parse_call(int line) {
    auto call = make(StatementKind::kCallBlock, line);
    if (stream_.current().is_operator("(")) parse_signature(*call);
    call->value = expressions_.parse_expression();
    if (call->value->kind != ExpressionKind::kCall) stream_.fail("expected a call behind 'call'", line);
    call->body = parse_function_body("endcall");
    return call;
  }

  std::unique_ptr<Statement> parse_filter(int line) {
    auto filter = make(StatementKind::kFilterBlock, line);
    filter->value = expressions_.parse_filters(expressions_.parse_filter(nullptr));
    filter->body = parse_block("endfilter");
    return filter;
  }

  std::unique_ptr<Statement> parse_with(int line) {
    auto with = make(StatementKind::kWith, line);
    while (!stream_.current().is(TokenType::kBlockEnd)) {
      if (!with->targets.empty()) stream_.expect_operator(",");
      with->targets.push_back(expressions_.parse_target());
      stream_.expect_operator("=");
      with->values.push_back(expressions_.parse_expression());
    }
    with->body = parse_block("endwith");
    return with;
  }

  std::unique_ptr<Statement> parse_print(int line) {
    auto print = make(StatementKind::kPrint, line);
    while (!stream_.current().is(TokenType::kBlockEnd)) {
      if (!print->values.empty()) stream_.expect_operator(",");
      print->values.push_back(expressions_.parse_expression());
    }
    return print;
  }

  std::unique_ptr<Statement> parse_generation(int line) {
    auto generation = make(StatementKind::kGeneration, line);
    has_generation_ = true;
    generation->body = parse_function_body("endgeneration");
    return generation;
  }

  std::unique_ptr<Statement> parse_jump(const Token& tag) {
    if (loops_ == 0) stream_.fail("'" + tag.text + "' stands outside of a loop", tag.line);
    return make(tag.text == "break" ? StatementKind::kBreak : StatementKind::kContinue, tag.line);
  }

  struct OpenTag {
    std::string name;
    int line;
  };

  TokenStream stream_;
  ExpressionParser expressions_;
  std::vector<OpenTag> open_;
  int depth_ = 0;
  int loops_ = 0;  // around the current tag, within its function
  bool has_generation_ = false;
};

}  // namespace

Tree parse(std::string_view source) {
  Tree tree = StatementParser(tokenize(source)).run();
  bind(tree);
  return tree;
}

}  // namespace sluice::text::jinja
