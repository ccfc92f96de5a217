#include "nodes/scorers/metric_name.h"

#include <algorithm>

#include "base/text/shown_text.h"

namespace sluice::nodes {
namespace {

constexpr size_t kLongestName = 200;

bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/' ||
         c == '.';
}

}  // namespace

std::string fault_of_metric_name(std::string_view name) {
  if (name == "failed_samples") return "a metric named failed_samples, which counts the samples that could not be scored";
  if (!name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_allowed)) return {};
  return "a metric named " + shown_text(name) + "; names have letters, digits and _ - / . and at most " +
         std::to_string(kLongestName) + " of them";
}

}  // namespace sluice::nodes
