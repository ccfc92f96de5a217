#include "nodes/scorers/math/math_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/strings.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

constexpr std::array<Replacement, 37> kSymbols{{
    {"{,}", ","},
    {"~", " "},
    {"\u2212", "-"},  // minus sign
    {"\u00d7", "*"},  // multiplication sign
    {"\u00b7", "*"},  // middle dot
    {"\u20ac", "$"},  // euro
    {"\u00a3", "$"},  // pound
    {"\u00a5", "$"},  // yen
    {"\u20b9", "$"},  // rupee
    {"\u00a0", " "},  // blanks that do not break
    {"\u202f", ""},   // narrow: between groups of digits
    {"\u2009", ""},
    {"\u00b2", "^2"},
    {"\u00b3", "^3"},
    {"\u2248", "="},  // almost equal
    {"\uff05", "%"},  // full width
    {"\u03c0", "\\pi "},
    {"\u221a", "\\sqrt "},
    {"\u221e", "\\infty "},
    {"\u00f7", "\\div "},
    {"\u00b1", "\\pm "},
    {"\u2213", "\\mp "},
    {"\u2264", "\\le "},
    {"\u2265", "\\ge "},
    {"\u2260", "\\ne "},
    {"\u2192", "\\to "},
    {"\u21d2", "\\Rightarrow "},
    {"\u00bd", "\\frac{1}{2}"},
    {"\u2153", "\\frac{1}{3}"},
    {"\u2154", "\\frac{2}{3}"},
    {"\u00bc", "\\frac{1}{4}"},
    {"\u00be", "\\frac{3}{4}"},
    {"\u2155", "\\frac{1}{5}"},
    {"\u215b", "\\frac{1}{8}"},
    {"\u215c", "\\frac{3}{8}"},
    {"\u215d", "\\frac{5}{8}"},
    {"\u215e", "\\frac{7}{8}"},
}};

constexpr std::array<Replacement, 9> kEscapes{{
    {"!", ""},
    {",", ""},
    {";", ""},
    {":", ""},
    {"$", "$"},
    {"%", "%"},
    {"{", "("},
    {"}", ")"},
    {"#", "#"},
}};

constexpr std::array<Replacement, 30> kCommands{{
    {"dfrac", "\\frac"},  {"tfrac", "\\frac"}, {"cfrac", "\\frac"}, {"times", "*"},        {"cdot", "*"},   {"circ", "\u00b0"},
    {"degree", "\u00b0"}, {"approx", "="},     {"left", ""},        {"right", ""},         {"big", ""},     {"Big", ""},
    {"displaystyle", ""}, {"textstyle", ""},   {"text", " "},       {"textbf", " "},       {"textit", " "}, {"textrm", " "},
    {"texttt", " "},      {"mathrm", " "},     {"mathbf", " "},     {"mathit", " "},       {"mathsf", " "}, {"mathtt", " "},
    {"mbox", " "},        {"boldsymbol", " "}, {"bf", " "},         {"operatorname", " "}, {"quad", " "},   {"qquad", " "},
}};

// Commands that are a value, or make one of what follows: a number beside them is a factor.
constexpr std::array<std::string_view, 28> kValues{"\\frac",  "\\sqrt",  "\\pi",    "\\ln",    "\\log", "\\exp",    "\\sin",
                                                   "\\cos",   "\\tan",   "\\infty", "\\div",   "\\pm",  "\\mp",     "\\alpha",
                                                   "\\beta",  "\\gamma", "\\delta", "\\theta", "\\phi", "\\lambda", "\\mu",
                                                   "\\sigma", "\\omega", "\\rho",   "\\binom", "\\cot", "\\sec",    "\\csc"};

template <size_t N>
const Replacement* find(const std::array<Replacement, N>& table, std::string_view what) {
  const auto found = std::ranges::find(table, what, &Replacement::first);
  return found == table.end() ? nullptr : &*found;
}

void take_command(std::string_view& text, std::string& plain) {
  const std::string_view command = command_at(text);
  if (!command.empty()) {
    const Replacement* known = find(kCommands, command.substr(1));
    plain += known ? known->second : command;
    text.remove_prefix(command.size());
    return;
  }
  const std::string_view escaped = text.substr(1, 1);  // \( and \\ and the like are blanks
  const Replacement* known = find(kEscapes, escaped);
  plain += known ? known->second : " ";
  text.remove_prefix(1 + escaped.size());
}

bool take_symbol(std::string_view& text, std::string& plain) {
  for (const auto& [symbol, replacement] : kSymbols) {
    if (!text.starts_with(symbol)) continue;
    plain += replacement;
    text.remove_prefix(symbol.size());
    return true;
  }
  return false;
}

}  // namespace

std::string_view command_at(std::string_view text) {
  if (text.size() < 2 || text[0] != '\\' || !is_letter(text[1])) return {};
  const auto end = std::find_if_not(text.begin() + 1, text.end(), is_letter);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

bool is_value_command(std::string_view text) { return std::ranges::find(kValues, command_at(text)) != kValues.end(); }

Braces braces_at(std::string_view text) {
  if (!text.starts_with('{')) return {};
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return {i + 1, true};
    }
  }
  return {text.size(), false};
}

std::optional<std::string_view> last_boxed(std::string_view text) {
  constexpr std::string_view kBoxed = "\\boxed", kFramed = "\\fbox";
  const size_t boxed = text.rfind(kBoxed), framed = text.rfind(kFramed);
  if (boxed == std::string_view::npos && framed == std::string_view::npos) return std::nullopt;
  const bool is_framed = boxed == std::string_view::npos || (framed != std::string_view::npos && framed > boxed);
  std::string_view rest = text.substr(is_framed ? framed + kFramed.size() : boxed + kBoxed.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const Braces braces = braces_at(rest);
  if (braces.length == 0) return trim(rest.substr(0, rest.find_first_of("$\n")));
  if (!braces.closed) return std::nullopt;
  return trim(rest.substr(1, braces.length - 2));
}

std::optional<std::string_view> after_hashes(std::string_view text) {
  constexpr std::string_view kHashes = "####";
  const size_t hashes = text.rfind(kHashes);
  if (hashes == std::string_view::npos) return std::nullopt;
  return trim(first_line(trim(text.substr(hashes + kHashes.size()))));
}

std::string plain_math(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    if (text.front() == '\\') {
      take_command(text, plain);
    } else if (!take_symbol(text, plain)) {
      plain += text.front();
      text.remove_prefix(1);
    }
  }
  return plain;
}

}  // namespace sluice::nodes
