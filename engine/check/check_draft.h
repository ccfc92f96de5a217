#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/contract/spec/plain_name.h"
#include "engine/plan/bind_settings.h"
#include "engine/plan/capacity.h"
#include "engine/plan/plan.h"

// The phases of check(): each adds to a Draft and reports what is wrong, and goes on with what is left.
namespace sluice::engine::checking {

/// A node while it is checked. Indices are into Draft::nodes, which keeps the order of the file.
struct DraftNode {
  const NodeSpec* spec = nullptr;
  const NodeType* type = nullptr;  // null: no such type
  std::shared_ptr<const void> params;
  std::optional<NodeNeeds> needs;  // absent: unknown type, or parameters from which nothing follows
  bool bound = false;              // every parameter is right
  std::vector<PresetUse> preset_uses;
  SourceSettings source;  // of a source
  int path = -1;          // index into Draft::paths; -1: not known, because of a mistake that is reported
  std::vector<int> inputs;
  std::vector<int> outputs;
  bool inputs_known = true;      // false: an input is missing or wrong, so what arrives is not known
  bool sealed = true;            // all that arrives is known: no ancestor is without needs or inputs_known
  std::string role;              // of [cluster.roles]; empty: there are none, or which one is not known
  Name place;                    // what `on` says after the role; empty text: nothing
  std::string executor = "cpu";  // with the role in front: "train/cpu:1"
  int stream = -1;               // its micro-batches come from its path's intake (-1) or have passed this filter last

  const std::string& name() const { return spec->name.text; }
};

/// What stands in front of a node's metrics: the source's name on every path but the main one, then its own metrics_prefix.
std::string metrics_prefix_of(const struct Draft& draft, const DraftNode& node);

/// What becomes a PlanPath.
struct DraftPath {
  int source = 0;
  std::optional<int> rollout;
  std::optional<int> refill;     // the filter that has dropped groups replaced
  std::vector<int> members;      // its nodes in topological order
  int64_t tokens_in_flight = 0;  // this and what follows is filled by check_capacity
  int64_t micro_batch_tokens = 0;
  PlanCapacity capacity;
  CapacityProof proof;  // by position in `members`

  int maker() const { return rollout.value_or(source); }
};

struct DraftModel {
  const ModelSpec* spec = nullptr;
  std::shared_ptr<const void> params;  // null: wrong
  ModelFacts facts;
  std::vector<PresetUse> preset_uses;
  // The first node that does so; -1: none.
  int reader = -1;
  int sampler = -1;  // on a path that does not measure, if there is one
  int updater = -1;
  int publisher = -1;

  bool has_live_reader = false;  // a node that is no source reads it; a source reads its text alone
  bool sampled_apart = false;    // by a path that has not its trainer: while that trains
  bool forwarded = false;        // ranks of a role of its own compute its passes, each alone

  bool is_idle_critic() const { return facts.head == "value" && reader >= 0 && updater < 0; }
  bool used() const { return reader >= 0 || sampler >= 0 || updater >= 0 || publisher >= 0; }
};

/// For each node the set of nodes from which data reaches it. Quadratic in bits: 1000 nodes take 125 kB.
class Ancestors {
 public:
  void resize(size_t nodes);
  void add_edge(int from, int to);  // `from` must have all its own ancestors by now
  bool contains(int node, int ancestor) const;

 private:
  size_t words_ = 0;
  std::vector<uint64_t> bits_;
};

struct Draft {
  Draft(const PipelineSpec& spec_, const Registry& registry_) : spec(spec_), registry(registry_) {}

  const PipelineSpec& spec;
  const Registry& registry;
  Problems problems;
  Plan plan;  // its settings are bound first
  RightSettings right;
  bool roles_known = true;         // false: not which of them trains, and so nothing of what its ranks have
  int64_t chosen_micro_batch = 0;  // where it is left to the plan: a candidate; 0: as small as it can be
  const Preset* preset = nullptr;  // null: none
  std::vector<DraftNode> nodes;
  std::vector<DraftModel> models;
  std::vector<int> order;  // topological, ties in file order; without nodes in or after a loop
  Ancestors ancestors;
  std::vector<DraftPath> paths;  // in the order of the file

  DraftNode& node(int index) { return nodes[static_cast<size_t>(index)]; }
  const DraftNode& node(int index) const { return nodes[static_cast<size_t>(index)]; }
  int find_node(const std::string& name) const;   // -1: none
  int find_model(const std::string& name) const;  // -1: none
  bool before(int a, int b) const { return ancestors.contains(b, a); }
  DraftPath* path_of(const DraftNode& node) { return node.path < 0 ? nullptr : &paths[static_cast<size_t>(node.path)]; }
  const DraftPath* path_of(const DraftNode& node) const {
    return node.path < 0 ? nullptr : &paths[static_cast<size_t>(node.path)];
  }
  bool trains_what_it_samples(const DraftModel& model) const {
    return model.sampler >= 0 && model.updater >= 0 && !measures(node(model.sampler));
  }
  bool knows_ranks_and_budget() const { return right.pipeline && right.budget && right.schedule && right.cluster && roles_known; }
  int main_path() const;  // index of the first that does not measure; -1: none
  bool measures(const DraftNode& node) const { return node.path >= 0 && this->node(path_of(node)->source).source.measures(); }

  /// `kind` is an id of problem_kinds() with that severity.
  void error(const char* kind, const SourceSpan& where, std::string message, std::string caret = {}, std::string help = {},
             std::vector<std::string> notes = {});
  void warning(const char* kind, const SourceSpan& where, std::string message, std::string caret = {}, std::string help = {},
               std::vector<std::string> notes = {});

  /// The problems of `error`; those that are of no kind yet become `kind`.
  void add(const char* kind, const UserError& error);

 private:
  std::map<std::string, int> node_index_;  // filled at the first look-up
  friend void resolve_nodes(Draft&);
};

/// The header of the node's table.
SourceSpan place_of(const DraftNode& node);

/// The value of a key where it is written, else the header.
SourceSpan place_of(const DraftNode& node, const std::string& key);
SourceSpan place_of(const Table& table, const std::string& key, const SourceSpan& otherwise);

/// Types of the registry, bound with `written`, and default parameters and stand-ins for the required ones beside it.
struct DefaultNode {
  const NodeType* type = nullptr;
  NodeNeeds needs;
};
std::optional<DefaultNode> with_default_params(const NodeType& type, const Registry& registry, std::vector<Entry> written = {});

/// False where a component could not be made: asking the contract for its needs would look into nothing.
bool params_usable(const NodeType& type, const void* params);

/// The scope in which the tables of a node and a model are bound. What the preset has for them is noted in `uses`, if given.
PresetScope preset_scope(const Draft& draft, const DraftNode& node, std::vector<PresetUse>* uses = nullptr);
PresetScope preset_scope(const Draft& draft, std::vector<PresetUse>* uses);

/// A note of what the node has from the preset, for problems whose cause the file does not show. Empty: it has nothing from it.
std::vector<std::string> preset_notes(const Draft& draft, const DraftNode& node);

/// Who has taken out "models.actor", or the one or two nodes that are: "--set nodes.train=false removes node 'train'". For
/// problems that may come of it. Empty: nobody.
std::vector<std::string> removal_notes(const Draft& draft, const std::string& path);
std::vector<std::string> notes_of_removed_nodes(const Draft& draft);

/// Another value of the setting that makes a node a barrier, under which it is none: `whiten = "none"`. Empty: none is known.
std::string setting_without_barrier(const Draft& draft, const DraftNode& node);

/// "train/cpu:1" without "train/".
std::string without_role(const std::string& executor);

/// tokens_in_flight that a role says itself; null: it has those of [budget].
const Entry* own_tokens(const Draft& draft, const PlanRole& role);

/// Where it is written how many tokens are in flight on the ranks of a role; null: on all.
SourceSpan place_of_tokens(const Draft& draft, const PlanRole* role);

void resolve_preset(Draft& draft);                       // check_preset.cpp: which one
void resolve_nodes(Draft& draft);                        // check_nodes.cpp: types, parameters, inputs
void check_graph(Draft& draft);                          // loops, order, sources, rollouts, paths
void settle_choices(Draft& draft);                       // check_choices.cpp: which columns are read by nodes that leave it open
void check_metrics(Draft& draft);                        // who records what
void check_metric_names(Draft& draft, DraftNode& node);  // check_metric_names.cpp: what one node declares
void check_reserved_metrics(Draft& draft);               // likewise, beside what the run records; only with an assembled plan
void check_columns(Draft& draft);                        // who reads and writes what
void check_filters(Draft& draft);                        // who drops groups, and whose micro-batches meet
void check_samples(Draft& draft);                        // of a group: are there enough to compare?
void bind_models(Draft& draft);                          // check_models.cpp: parameters and what follows from them
void check_models(Draft& draft);                         // who uses which model, and how
void check_forward_models(Draft& draft);  // check_forward_models.cpp: whose weights ranks of a role of their own have
void check_shared_models(Draft& draft);   // check_shared_models.cpp: of those that ranks compute together
void take_facts_of_averaged(Draft& draft, DraftModel& model);  // check_averages.cpp: as take_facts_of_base() of check_models.cpp
void note_averages(Draft& draft);                              // before who uses which is noted: who trains one averages it
bool may_use_average(ModelUse use);
void check_average(Draft& draft, const DraftModel& model);  // only where all nodes are known
void check_order_of_readers(Draft& draft);                  // of models that are trained; only in a graph without other errors
void check_roles(Draft& draft);                             // which ranks have which nodes
void check_executors(Draft& draft);                         // where nodes run
void check_capacity(Draft& draft);                          // tokens: can it stall?
void check_effect(Draft& draft);          // who works for nothing; only in a graph without errors, like the next
void check_preset(Draft& draft);          // has it any value for this pipeline?
void check_doubts(Draft& draft);          // what is allowed but hardly meant
void check_on_policy(Draft& draft);       // check_on_policy.cpp: of which weights are the samples?
void check_routes(Draft& draft);          // check_routes.cpp: whose are they, and who goes by them?
void assemble_plan(Draft& draft);         // check_assemble.cpp: only when there is no error
void check_wanted_metrics(Draft& draft);  // check_metrics.cpp: are they recorded? Only with an assembled plan, like the next
void check_memory(Draft& draft);          // bytes: does it fit?

}  // namespace sluice::engine::checking
