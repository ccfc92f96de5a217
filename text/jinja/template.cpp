#include "text/jinja/template.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/jinja/from_json.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/lexer.h"
#include "text/jinja/parser.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

constexpr size_t kLongestTemplate = 1 << 20;

std::string checked(std::string source, const std::string& name) {
  if (source.size() > kLongestTemplate) throw UserError(name + ": a chat template has at most " + human_bytes(kLongestTemplate));
  if (!is_utf8(source)) throw UserError(name + ": the template is not UTF-8");
  return source;
}

// The bytes of the generations in the finished text, whose end may lie before theirs when a block around them was cut.
std::vector<std::pair<size_t, size_t>> bytes_of(const std::vector<Interpreter::Generation>& generations, std::string_view text) {
  std::vector<std::pair<size_t, size_t>> ranges;
  for (const auto& generation : generations) {
    const size_t begin = std::min(generation.begin, text.size());
    ranges.emplace_back(begin, begin + unicode::offset_of(text.substr(begin), generation.characters));
  }
  return ranges;
}

}  // namespace

Template::Template(std::string source, std::string name)
    : source_(std::make_shared<SourceText>(SourceText{name, checked(std::move(source), name)})) {
  try {
    tree_ = std::make_unique<Tree>(parse(source_->text));
  } catch (const SyntaxFailure& failure) {
    fail(failure.line, failure.message);
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

bool Template::has_generation() const { return tree_->has_generation; }

// The line is shown as far as a person reads: templates of one line are common.
void Template::fail(int line, const std::string& message) const {
  constexpr size_t kShown = 160;
  size_t begin = 0;
  for (int i = 1; i < line && begin != std::string::npos; ++i)
    begin = source_->text.find('\n', begin) == std::string::npos ? begin : source_->text.find('\n', begin) + 1;
  const size_t length = std::min(source_->text.find('\n', begin), source_->text.size()) - begin;
  if (length > kShown) throw UserError(source_->name + ":" + std::to_string(line) + ": " + message);
  Problem problem;
  problem.where = {source_, line, 1, static_cast<int>(std::max<size_t>(1, length))};
  problem.message = message;
  throw UserError(std::move(problem));
}

Rendered Template::render(const Json& variables, const std::optional<std::tm>& now, const Limits& limits) const {
  Sandbox sandbox(limits);
  int line = 1;
  try {
    const Value values = value_of_variables(sandbox, variables);
    Interpreter interpreter(*tree_, sandbox, values, now);
    try {
      Rendered rendered{interpreter.run(), {}};
      rendered.generations = bytes_of(interpreter.generations(), rendered.text);
      return rendered;
    } catch (const Failure&) {
      line = std::max(1, interpreter.line());
      throw;
    }
  } catch (const Failure& failure) {
    fail(line, failure.what());
  }
}

}  // namespace sluice::text::jinja
