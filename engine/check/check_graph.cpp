#include <algorithm>
#include <functional>
#include <queue>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"

namespace sluice::engine::checking {
namespace {

// Kahn's algorithm; of the nodes that are ready, the first in the file goes first.
void sort_topologically(Draft& draft) {
  std::vector<size_t> waiting(draft.nodes.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    waiting[i] = draft.nodes[i].inputs.size();
    if (waiting[i] == 0) ready.push(static_cast<int>(i));
  }
  draft.ancestors.resize(draft.nodes.size());
  while (!ready.empty()) {
    const int index = ready.top();
    ready.pop();
    draft.order.push_back(index);
    for (const int output : draft.node(index).outputs) {
      draft.ancestors.add_edge(index, output);
      if (--waiting[static_cast<size_t>(output)] == 0) ready.push(output);
    }
  }
}

// Follows inputs inside `left` until a node comes again: the loop in the direction of the data, beginning with its first node of
// the file. Nodes from which no loop is reached are taken out of `left`; empty when `start` is one of them.
std::vector<int> loop_before(const Draft& draft, int start, std::vector<bool>& left) {
  std::vector<int> path{start};
  std::vector<bool> on_path(left.size());
  on_path[static_cast<size_t>(start)] = true;
  while (!path.empty()) {
    const auto& inputs = draft.node(path.back()).inputs;
    const auto next = std::find_if(inputs.begin(), inputs.end(), [&](int input) { return left[static_cast<size_t>(input)]; });
    if (next == inputs.end()) {
      left[static_cast<size_t>(path.back())] = false;
      path.pop_back();
      continue;
    }
    if (on_path[static_cast<size_t>(*next)]) {
      path.erase(path.begin(), std::find(path.begin(), path.end(), *next));
      std::reverse(path.begin(), path.end());
      std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
      return path;
    }
    on_path[static_cast<size_t>(*next)] = true;
    path.push_back(*next);
  }
  return {};
}

void report_loop(Draft& draft, const std::vector<int>& loop) {
  std::vector<std::string> names;
  for (const int index : loop) names.push_back(draft.node(index).name());
  names.push_back(names.front());
  const DraftNode& first = draft.node(loop.front());
  SourceSpan where = place_of(first);
  for (const Name& input : first.spec->inputs) {
    if (input.text == draft.node(loop.back()).name()) where = input.where;
  }
  draft.error("nodes-in-a-loop", where, "nodes form a loop: " + join(names, " -> "), "an iteration passes each node once",
              "take one of these inputs away; what later iterations need of earlier ones goes through the weights of a model");
}

// What sorting could not order lies in loops or after them. Each loop is reported once; its nodes are taken out before the next
// search.
void report_loops(Draft& draft) {
  std::vector<bool> left(draft.nodes.size(), true);
  for (const int index : draft.order) left[static_cast<size_t>(index)] = false;
  for (size_t i = 0; i < left.size(); ++i) {
    while (left[i]) {
      const std::vector<int> loop = loop_before(draft, static_cast<int>(i), left);
      if (!loop.empty()) report_loop(draft, loop);
      for (const int index : loop) left[static_cast<size_t>(index)] = false;
    }
  }
}

std::string types_of_kind(const Registry& registry, NodeKind kind) {
  constexpr size_t kListed = 6;
  std::vector<std::string> names;
  for (const auto& [name, type] : registry.nodes()) {
    if (type.kind == kind && names.size() < kListed) names.push_back(sluice::quoted(name));
  }
  return join(names, " or ");
}

bool is_source(const DraftNode& node) { return node.type != nullptr && node.type->kind == NodeKind::kSource; }

bool all_types_known(const Draft& draft) {
  return std::all_of(draft.nodes.begin(), draft.nodes.end(), [](const DraftNode& node) { return node.type != nullptr; });
}

bool is_rollout(const DraftNode& node) { return node.type != nullptr && node.type->kind == NodeKind::kRollout; }

// Each source begins a path.
void find_sources(Draft& draft) {
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    DraftNode& node = draft.nodes[i];
    if (!is_source(node)) continue;
    if (!node.spec->inputs.empty()) {
      draft.error("source-with-inputs", node.spec->inputs.front().where, "source '" + node.name() + "' takes inputs",
                  "groups begin here: remove inputs");
    }
    node.path = static_cast<int>(draft.paths.size());
    draft.paths.emplace_back().source = static_cast<int>(i);
  }
  if (!draft.paths.empty() || !all_types_known(draft)) return;
  const std::string types = types_of_kind(draft.registry, NodeKind::kSource);
  draft.error("source-missing", draft.spec.where, "the pipeline has no source: nothing would ever start", {},
              types.empty() ? std::string() : "add a node of type " + types, notes_of_removed_nodes(draft));
}

void check_all_have_inputs(Draft& draft) {
  for (const DraftNode& node : draft.nodes) {
    if (node.type == nullptr || is_source(node) || !node.spec->inputs.empty()) continue;
    if (draft.paths.empty() && is_rollout(node)) continue;  // its input is what is missing
    draft.error("node-without-inputs", place_of(node), "nothing from a source reaches '" + node.name() + "': it has no inputs",
                "type " + sluice::quoted(node.type->info.type) + " is not a source",
                "name in inputs = [...] the nodes whose columns it reads");
  }
}

// Before a rollout there are no samples, so no micro-batches.
void check_ways_past(Draft& draft, const DraftPath& path) {
  const std::string& source = draft.node(path.source).name();
  const std::string& rollout = draft.node(*path.rollout).name();
  for (const int output : draft.node(path.source).outputs) {
    const DraftNode& node = draft.node(output);
    if (output == *path.rollout || is_rollout(node)) continue;
    for (const Name& input : node.spec->inputs) {
      if (input.text != source) continue;
      draft.error("past-rollout", input.where,
                  "'" + node.name() + "' takes groups from source '" + source + "' past rollout '" + rollout + "'",
                  "there are no samples yet",
                  "take them from " + sluice::quoted(rollout) + ": the columns of the source pass through it");
    }
  }
}

void check_source_makes(Draft& draft, const DraftPath& path) {
  const DraftNode& source = draft.node(path.source);
  if (!source.bound) return;
  if (!path.rollout && source.needs->samples_per_group <= 0 && all_types_known(draft)) {
    const std::string types = types_of_kind(draft.registry, NodeKind::kRollout);
    draft.error("samples-missing", place_of(source),
                "source '" + source.name() + "' makes prompts without samples, and no node makes samples of them", {},
                types.empty() ? std::string() : "add a node of type " + types, notes_of_removed_nodes(draft));
  }
  if (!path.rollout) return;
  for (const ColumnSpec& column : source.needs->writes) {
    if (column.extent == Extent::kGroup) continue;
    draft.error("samples-twice", place_of(source),
                "source '" + source.name() + "' makes samples itself, so rollout '" + draft.node(*path.rollout).name() +
                    "' has nothing to do",
                "it writes " + column.name, "take the rollout away, or use a source of prompts");
    return;
  }
}

// The path of the one source that a rollout takes its groups from; reports what is no such. Where there is one source, the
// rollout is meant to be its own.
DraftPath* path_of_rollout(Draft& draft, const DraftNode& rollout) {
  if (draft.paths.empty()) return nullptr;
  const bool fine = rollout.inputs.size() == 1 && is_source(draft.node(rollout.inputs.front()));
  if (fine) return draft.path_of(draft.node(rollout.inputs.front()));
  // What is of an unknown type may be the source.
  const bool may_be_fine = std::ranges::any_of(rollout.inputs, [&](int input) { return draft.node(input).type == nullptr; });
  if (may_be_fine) return nullptr;
  if (rollout.inputs_known && !rollout.spec->inputs.empty()) {
    const std::string& source = draft.node(draft.paths.front().source).name();
    const bool one = draft.paths.size() == 1;
    draft.error("rollout-misplaced", rollout.spec->inputs.front().where,
                "rollout '" + rollout.name() + "' must take its groups from " +
                    (one ? "source '" + source + "' alone" : std::string("one source alone")),
                {}, "inputs = [" + sluice::quoted(source) + "]");
  }
  return draft.paths.size() == 1 ? &draft.paths.front() : nullptr;
}

void check_rollouts(Draft& draft) {
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    const DraftNode& node = draft.nodes[i];
    if (!is_rollout(node)) continue;
    DraftPath* const path = path_of_rollout(draft, node);
    if (path == nullptr) continue;
    if (path->rollout && !(node.inputs_known && draft.node(*path->rollout).inputs_known)) {
      if (node.inputs_known)
        path->rollout = static_cast<int>(i);  // of the other one it is not known whether it is of this source
    } else if (path->rollout) {
      draft.error("rollout-twice", place_of(node),
                  "a source has at most one rollout; '" + draft.node(*path->rollout).name() + "' makes samples of '" +
                      draft.node(path->source).name() + "' already",
                  {}, "give it a source of its own");
    } else {
      path->rollout = static_cast<int>(i);
    }
  }
  for (const DraftPath& path : draft.paths) {
    if (path.rollout) check_ways_past(draft, path);
    check_source_makes(draft, path);
  }
}

void report_meeting(Draft& draft, const DraftNode& node, int first, int other) {
  const auto source_of = [&](int input) { return draft.node(draft.path_of(draft.node(input))->source).name(); };
  const auto where = std::ranges::find(node.spec->inputs, draft.node(other).name(), &Name::text);
  draft.error(
      "paths-meet", where == node.spec->inputs.end() ? place_of(node) : where->where,
      "'" + node.name() + "' cannot join micro-batches of sources '" + source_of(first) + "' and '" + source_of(other) + "'",
      "each source has groups of its own", "take all its inputs from one source; paths share models, not micro-batches");
}

// A node lies on the path of its source. Where two would meet, it counts to the first.
void follow_paths(Draft& draft) {
  for (const int index : draft.order) {
    DraftNode& node = draft.node(index);
    if (!is_source(node)) {
      int first = -1;
      for (const int input : node.inputs) {
        const int path = draft.node(input).path;
        if (path < 0) continue;
        if (first < 0) first = input;
        if (path == draft.node(first).path) continue;
        report_meeting(draft, node, first, input);
        break;
      }
      node.path = first < 0 ? -1 : draft.node(first).path;
    }
    if (DraftPath* path = draft.path_of(node)) path->members.push_back(index);
  }
}

// Somebody has to train, or at least to go through the graph in every iteration.
void check_measuring(Draft& draft) {
  const auto measures = [&](const DraftPath& path) { return draft.node(path.source).source.measures(); };
  if (draft.paths.empty() || !all_types_known(draft) || !std::ranges::all_of(draft.paths, measures)) return;
  const DraftNode& source = draft.node(draft.paths.front().source);
  const char* key = source.source.every_iterations ? "every_iterations" : "before_training";
  draft.error("nothing-to-measure", place_of(source, key), "every source only measures: none takes part in all iterations", {},
              std::string("take ") + key + " away from '" + source.name() + "'");
}

// What reaches a node is known when its inputs are, and all that is before them.
void mark_sealed(Draft& draft) {
  for (DraftNode& node : draft.nodes) node.sealed = false;  // those in and after a loop stay so
  for (const int index : draft.order) {
    DraftNode& node = draft.node(index);
    node.sealed = node.inputs_known && (is_source(node) || !node.inputs.empty()) &&
                  std::all_of(node.inputs.begin(), node.inputs.end(),
                              [&](int input) { return draft.node(input).sealed && draft.node(input).needs; });
  }
}

}  // namespace

void check_graph(Draft& draft) {
  sort_topologically(draft);
  if (draft.order.size() < draft.nodes.size()) report_loops(draft);
  find_sources(draft);
  check_all_have_inputs(draft);
  check_rollouts(draft);
  follow_paths(draft);
  check_measuring(draft);
  mark_sealed(draft);
}

}  // namespace sluice::engine::checking
