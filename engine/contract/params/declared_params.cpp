#include "engine/contract/params/declared_params.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text/strings.h"
#include "engine/contract/params/param_values.h"
#include "engine/contract/spec/plain_name.h"

namespace sluice::engine {
namespace {

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// "0.5", "inf" or "[1.0, 2.0]"; nothing of "auto" and of a schedule.
std::vector<double> numbers_in(const ParamInfo& info) {
  std::string_view text = info.default_text;
  if (info.kind == ParamKind::kReals) text = text.substr(1, text.size() - 2);
  std::vector<double> numbers;
  for (const std::string& part : split(text, ',')) {
    if (const auto number = number_of(trim(part))) numbers.push_back(*number);
  }
  return numbers;
}

bool has_numbers(ParamKind kind) {
  return kind == ParamKind::kInteger || kind == ParamKind::kReal || kind == ParamKind::kScheduled || kind == ParamKind::kReals;
}

bool takes_nothing(const ParamInfo& info) {
  if (!info.minimum || !info.maximum) return false;
  return info.minimum_excluded ? *info.minimum >= *info.maximum : *info.minimum > *info.maximum;
}

std::string fault_of(const ParamInfo& info) {
  if (!is_plain_name(info.name))
    return "parameter " + sluice::quoted(info.name) + " has a name that is no bare key of TOML: letters, digits, _ and -";
  if (takes_nothing(info)) return "no number is in the bounds of parameter " + info.name + ": " + expectation(info);
  if (info.default_text.empty()) return fault_of_declared(info.children);
  const auto is_refused = [&](double number) { return !detail::takes_number(info, number); };
  if (has_numbers(info.kind) && std::ranges::any_of(numbers_in(info), is_refused)) {
    return "the default of parameter " + info.name + ", " + info.default_text + ", is not what it takes: " + expectation(info) +
           " (inf only where that is the upper bound)";
  }
  return {};
}

}  // namespace

std::string fault_of_declared(const std::vector<ParamInfo>& params) {
  for (const ParamInfo& info : params) {
    if (std::string fault = fault_of(info); !fault.empty()) return fault;
  }
  return {};
}

}  // namespace sluice::engine
