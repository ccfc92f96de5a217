#include <algorithm>
#include <string>

#include "engine/check/check_draft.h"

namespace sluice::engine::checking {
namespace {

// Whose routers a node works with; null: that is wrong, and reported.
const DraftModel* model_of(const Draft& draft, const DraftNode& node) {
  const int model = node.needs->models.empty() ? -1 : draft.find_model(node.needs->models.front().model);
  return model < 0 ? nullptr : &draft.models[static_cast<size_t>(model)];
}

const DraftNode* writer_of_routes(const Draft& draft, const DraftNode& reader) {
  const std::string& column = reader.needs->routes_column;
  for (const DraftNode& node : draft.nodes) {
    if (&node == &reader || !node.needs || node.needs->routes_column != column) continue;
    for (const ColumnSpec& written : node.needs->writes)
      if (written.name == column) return &node;
  }
  return nullptr;
}

void check_model(Draft& draft, const DraftNode& node) {
  const DraftModel* const model = model_of(draft, node);
  if (model == nullptr || model->params == nullptr) return;
  const std::string &key = node.needs->routes_by, &name = model->spec->name.text;
  if (!model->facts.is_mixture()) {
    return draft.error("setting-unusable", place_of(node, key),
                       "model '" + name + "' is no mixture of experts: it has no routers", {}, "remove " + key);
  }
  const DraftNode* const writer = writer_of_routes(draft, node);
  const DraftModel* const of_writer = writer == nullptr ? nullptr : model_of(draft, *writer);
  if (of_writer == nullptr || of_writer->params == nullptr) return;
  const ModelFacts &facts = model->facts, &sampled = of_writer->facts;
  if (facts.experts == sampled.experts && facts.route_bytes_per_token == sampled.route_bytes_per_token) return;
  draft.error("setting-unusable", place_of(node, key),
              "routes of model '" + of_writer->spec->name.text + "', which '" + writer->name() + "' writes, do not fit model '" +
                  name + "': it has other layers or experts",
              {}, "remove " + key + ", or models of one shape");
}

// What is written costs memory of each sample.
void check_read(Draft& draft, const DraftNode& node) {
  const std::string& column = node.needs->routes_column;
  const auto is_read = [&](const DraftNode& other) {
    return other.needs && &other != &node &&
           std::ranges::any_of(other.needs->reads, [&](const ColumnSpec& read) { return read.name == column; });
  };
  const bool is_written = std::ranges::any_of(node.needs->writes, [&](const auto& written) { return written.name == column; });
  const bool all_known = std::ranges::all_of(draft.nodes, [](const DraftNode& other) { return other.needs.has_value(); });
  if (!is_written || !all_known || std::ranges::any_of(draft.nodes, is_read)) return;
  draft.warning("column-not-read", place_of(node, node.needs->routes_by),
                "no node reads " + column + ", which '" + node.name() + "' writes", {},
                "replay_routes = true in a node that trains or computes log-probabilities; or remove " + node.needs->routes_by);
}

}  // namespace

void check_routes(Draft& draft) {
  for (const DraftNode& node : draft.nodes) {
    if (!node.needs || node.needs->routes_by.empty()) continue;
    check_model(draft, node);
    check_read(draft, node);
  }
}

}  // namespace sluice::engine::checking
