#include "engine/contract/world/metric_spec.h"

#include <algorithm>
#include <array>

#include "base/text/strings.h"

namespace sluice::engine {
namespace {

constexpr std::array<std::string_view, 3> kOfTiming{"time/", "memory/", "engine/"};

size_t timing_group_length(std::string_view name) {
  for (const std::string_view group : kOfTiming) {
    if (name.starts_with(group)) return group.size();
  }
  return 0;
}

// "policy/loss" as it would be without groups: "policy_loss".
std::string in_one_word(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name;
}

}  // namespace

std::vector<std::string> names_of(const MetricSpec& metric) {
  if (metric.kind != Metric::kMoments) return {metric.name};
  return {metric.name + "_mean", metric.name + "_std"};
}

std::string metric_of_node(const std::string& name, const std::string& node) {
  std::vector<std::string> parts = split(name, '/');
  std::ranges::replace(parts, "NODE", node);
  return join(parts, "/");
}

std::string fault_of_metric_name(const std::string& name) {
  if (name.empty()) return "it is empty";
  if (!is_utf8(name)) return "it is not UTF-8";
  const auto is_blank = [](unsigned char c) { return c <= 0x20 || c == 0x7F; };
  if (std::ranges::any_of(name, is_blank)) return "it has a blank or a control character";
  const std::vector<std::string> parts = split(name, '/');
  return std::ranges::find(parts, "") == parts.end() ? "" : "a part of it is empty";
}

std::string shown_name(const MetricSpec& metric) { return metric.is_family ? metric.name + "..." : join(names_of(metric), ", "); }

std::string prefixed_metric(const std::string& prefix, const std::string& name) {
  if (prefix.empty()) return name;
  return std::string(name).insert(timing_group_length(name), prefix + "/");
}

bool depends_on_timing(std::string_view name) { return timing_group_length(name) > 0; }

std::string nearest_metric(const std::string& wanted, const std::vector<std::string>& names) {
  const auto means = [&](const std::string& name) { return name.ends_with("/" + wanted) || in_one_word(name) == wanted; };
  if (const auto found = std::ranges::find_if(names, means); found != names.end()) return *found;
  const auto has_its_ends = [&, ends = split(wanted, '/')](const std::string& name) {
    const std::vector<std::string> parts = split(name, '/');
    return ends.size() > 1 && parts.front() == ends.front() && parts.back() == ends.back();
  };
  if (const auto found = std::ranges::find_if(names, has_its_ends); found != names.end()) return *found;
  if (std::string near = did_you_mean(wanted, names); !near.empty()) return near;
  std::vector<std::string> last_parts;
  for (const std::string& name : names) last_parts.push_back(split(name, '/').back());
  const auto near = std::ranges::find(last_parts, did_you_mean(wanted, last_parts));
  return near == last_parts.end() ? std::string() : names[static_cast<size_t>(near - last_parts.begin())];
}

}  // namespace sluice::engine
