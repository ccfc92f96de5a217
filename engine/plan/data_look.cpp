#include "engine/plan/data_look.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr const char *kUnusable = "data-unusable", *kDoubtful = "data-doubtful";

const Table& table_of(const PipelineSpec& spec, const std::string& node) {
  const auto found = std::ranges::find_if(spec.nodes, [&](const NodeSpec& of) { return of.name.text == node; });
  SLUICE_CHECK(found != spec.nodes.end(), "the plan is of another pipeline: it has node " + node);
  return found->params;
}

}  // namespace

std::filesystem::path DataLook::folder_of(const std::string& model) const {
  const PlanModel* const found = plan_.find_model(model);
  return found == nullptr ? std::filesystem::path() : found->facts.folder;
}

std::string DataLook::sampled_model() const {
  if (!path_.rollout) return {};
  const auto& models = plan_.nodes[static_cast<size_t>(*path_.rollout)].needs.models;
  const auto found = std::ranges::find_if(models, [](const ModelNeed& need) { return need.use == ModelUse::kSamples; });
  return found == models.end() ? std::string() : found->model;
}

void DataLook::error(std::string_view key, std::string message, std::string help) {
  add(kUnusable, Severity::kError, key, std::move(message), {}, std::move(help));
}

void DataLook::warning(std::string_view key, std::string message, std::vector<std::string> notes, std::string help) {
  add(kDoubtful, Severity::kWarning, key, std::move(message), std::move(notes), std::move(help));
}

void DataLook::add(const char* kind, Severity severity, std::string_view key, std::string message, std::vector<std::string> notes,
                   std::string help) {
  const Entry* entry = table_.find(key);
  problems_.push_back({.kind = kind,
                       .where = entry != nullptr ? entry->value.where : table_.where,
                       .message = std::move(message),
                       .caret = {},
                       .notes = std::move(notes),
                       .help = std::move(help),
                       .severity = severity});
}

Problems check_data(const Plan& plan, const PipelineSpec& spec, DataDepth depth) {
  Problems problems;
  for (const PlanNode& node : plan.nodes) {
    if (!node.type->look_at_data) continue;
    DataLook look(plan, node, table_of(spec, node.name), depth, problems);
    try {
      node.type->look_at_data(node.params.get(), look);
    } catch (const UserError& error) {
      for (Problem problem : error.problems()) {
        if (problem.kind.empty()) problem.kind = kUnusable;
        if (!problem.where.known()) problem.where = node.place_of(problem.message);
        problems.push_back(std::move(problem));
      }
    }
  }
  return problems;
}

}  // namespace sluice::engine
