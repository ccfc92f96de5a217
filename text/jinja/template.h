#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/problem.h"
#include "text/jinja/sandbox.h"

namespace sluice::text::jinja {

struct Tree;

/// What a render gives besides the text: the bytes [first, second) of it that {% generation %} blocks cover, as the reference
/// counts them (an inner block comes before its outer one, and both begin where the outer one does).
struct Rendered {
  std::string text;
  std::vector<std::pair<size_t, size_t>> generations;
};

/// A Jinja template as transformers renders chat templates: trim_blocks and lstrip_blocks on, break and continue, generation
/// blocks, tojson without HTML escapes, raise_exception, strftime_now; in a sandbox in which nothing is changed but namespaces.
/// Gives the text of jinja2 3.1.6, byte for byte.
///
/// Not supported, and said by name: blocks and includes (they need other templates), autoescape, filters for web pages, integers
/// beyond 64 bits, bytes, characters by name in string literals.
///
/// Immutable after the constructor: render() from many threads.
class Template {
 public:
  /// `name`: for messages. Throws UserError with name, line and what was expected when `source` is no template.
  Template(std::string source, std::string name);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  /// `variables`: a JSON object. `now`: what strftime_now prints; nothing: the local time of the clock. The limits grow with the
  /// size of the variables, so that a long conversation needs no other ones. Throws UserError with name and line for what the
  /// template cannot do, what it refuses (raise_exception) and for a limit that it exceeds.
  Rendered render(const Json& variables, const std::optional<std::tm>& now = std::nullopt, const Limits& limits = {}) const;

  bool has_generation() const;
  const std::string& source() const { return source_->text; }

 private:
  [[noreturn]] void fail(int line, const std::string& message) const;

  std::shared_ptr<const SourceText> source_;
  std::unique_ptr<const Tree> tree_;
};

}  // namespace sluice::text::jinja
