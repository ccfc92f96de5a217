#include "engine/check/partly_checked.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::engine {
namespace {

// Errors that may only say that the values of an unknown preset are missing.
constexpr std::array<std::string_view, 6> kMayFollowFromPreset{"missing-key",   "settings-disagree", "setting-without-effect",
                                                               "budget-stalls", "sample-too-long",   "group-exceeds-micro-batch"};

bool is_at(const Problem& problem, const Value& value) {
  return problem.where.source == value.where.source && problem.where.line == value.where.line &&
         problem.where.column == value.where.column;
}

bool is_unknown_preset(const Problem& problem, const PipelineSpec& spec) {
  const Entry* preset = spec.pipeline.find("preset");
  return preset != nullptr && problem.kind == "unknown-choice" && is_at(problem, preset->value);
}

bool may_be_of_a_plugin(const Problem& problem, const PipelineSpec& spec) {
  constexpr std::array<std::string_view, 3> kKinds{"unknown-node-type", "unknown-component", "device-unknown"};
  return std::ranges::find(kKinds, problem.kind) != kKinds.end() || is_unknown_preset(problem, spec);
}

std::string line_of(const Problem& problem) {
  const std::string place =
      problem.where.known() ? problem.where.source->name + ":" + std::to_string(problem.where.line) + ": " : "";
  return place + problem.message + (problem.caret.empty() ? "" : "; " + problem.caret);
}

}  // namespace

PartlyChecked check_without_plugins(const PipelineSpec& spec, const Registry& registry, int ranks) {
  PartlyChecked partly{.result = check(spec, registry, ranks), .unchecked = {}};
  Problems& problems = partly.result.problems;
  bool preset_unknown = false, device_unknown = false;
  for (const Problem& problem : problems) {
    if (!may_be_of_a_plugin(problem, spec)) continue;
    partly.unchecked.push_back(line_of(problem));
    preset_unknown |= is_unknown_preset(problem, spec);
    device_unknown |= problem.kind == "device-unknown";
  }
  std::erase_if(problems, [&](const Problem& problem) {
    return may_be_of_a_plugin(problem, spec) || (device_unknown && problem.kind == "executor-unknown") ||
           (preset_unknown && std::ranges::find(kMayFollowFromPreset, problem.kind) != kMayFollowFromPreset.end());
  });
  return partly;
}

}  // namespace sluice::engine
