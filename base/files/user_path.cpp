#include "base/files/user_path.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/error.h"

namespace sluice {
namespace {

bool is_of_name(unsigned char c) { return std::isalnum(c) != 0 || c == '_'; }

bool begins_at_home(std::string_view text) { return text == "~" || text.starts_with("~/"); }

std::string value_of(const std::string& name, std::string_view text) {
  std::string value = environment_value(name);
  if (!value.empty()) return value;
  throw UserError("environment variable " + name + " is not set, which the path " + std::string(text) + " needs",
                  "set it, or write the path; a dollar sign in a name is written $$");
}

// The variable that begins after a dollar sign at the front of `rest`. Takes it off; empty: no variable begins here.
std::string take_name(std::string_view& rest) {
  const bool braced = rest.starts_with('{');
  const std::string_view inner = rest.substr(braced ? 1 : 0);
  const auto end = static_cast<size_t>(std::ranges::find_if_not(inner, is_of_name) - inner.begin());
  if (end == 0 || (braced && (end == inner.size() || inner[end] != '}'))) return {};
  rest.remove_prefix(end + (braced ? 2 : 0));
  return std::string(inner.substr(0, end));
}

}  // namespace

std::string environment_value(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::string() : std::string(value);
}

std::string with_home(std::string_view text) {
  if (!begins_at_home(text)) return std::string(text);
  return value_of("HOME", text) + std::string(text.substr(1));
}

std::string expanded_path(std::string_view text) {
  std::string path;
  std::string_view rest = text;
  if (begins_at_home(rest)) {
    path = value_of("HOME", text);
    rest.remove_prefix(1);
  }
  while (!rest.empty()) {
    const size_t dollar = std::min(rest.find('$'), rest.size());
    path += rest.substr(0, dollar);
    rest.remove_prefix(dollar);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    const bool doubled = rest.starts_with('$');
    if (doubled) rest.remove_prefix(1);
    const std::string name = doubled ? std::string() : take_name(rest);
    path += name.empty() ? "$" : value_of(name, text);
  }
  return path;
}

std::string unexpanded_path(std::string_view path) {
  std::string text;
  for (const char c : path) text += c == '$' ? "$$" : std::string(1, c);
  return text;
}

}  // namespace sluice
