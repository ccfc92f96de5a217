#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/params/named_file.h"
#include "engine/contract/registry.h"
#include "engine/contract/settings.h"
#include "engine/plan/plan_memory.h"
#include "engine/plan/rank_layout.h"

namespace sluice::engine {

struct PlanColumn {
  ColumnSpec spec;
  int writer = -1;           // index into Plan::nodes
  std::vector<int> readers;  // likewise, ascending; the column dies after the last of them is done
};

struct PlanNode {
  std::string name;
  SourceSpan where;
  const NodeType* type = nullptr;
  std::shared_ptr<const void> params;
  std::vector<NamedFile> files;  // that its table names
  NodeNeeds needs;               // its metrics with those that the engine records in its name
  std::string metrics_prefix;    // see prefixed_metric()
  std::string executor;
  int path = 0;              // index into Plan::paths
  std::vector<int> inputs;   // indices into Plan::nodes
  std::vector<int> outputs;  // likewise
  std::vector<int> reads;    // indices into Plan::columns
  std::vector<int> writes;   // likewise
  std::vector<int> frees;    // columns for which this is the last reader on every path
  int stream = -1;           // the filter that its micro-batches have passed last; -1: they come from the path's intake

  // The most tokens it can hold or cause at once: a barrier an iteration, a join what waits for the other inputs.
  int64_t worst_tokens = 0;

  bool joins() const { return inputs.size() > 1; }
  bool is_barrier() const { return needs.scope == Scope::kIteration; }

  /// Where what `message` says stands in the pipeline: at the file that it is about, else at the node.
  SourceSpan place_of(const std::string& message) const;
};

/// Whether a node computes a model over micro-batches, and so in passes of at most [budget] pass_tokens. Sources have a model for
/// its text alone, rollouts work in steps of their own.
bool computes_in_passes(const NodeType& type, const NodeNeeds& needs);

/// An edge with the columns that are alive on it.
struct PlanEdge {
  int from = 0;
  int to = 0;
  std::vector<int> columns;
};

struct PlanModel {
  std::string name;
  std::shared_ptr<const void> params;
  ModelFacts facts;
  ModelUsage usage;
  std::string effective;  // its table, as TOML keys and values
};

struct PlanExecutor {
  std::string name;  // "cpu", "cpu:1", "cuda:0"
  int threads = 1;
};

/// Worst cases of one path, in tokens: of the rank that has most.
struct PlanCapacity {
  int64_t group_tokens = 0;        // one group
  int64_t drawn_groups = 0;        // groups drawn in an iteration: its share of groups_per_iteration, or more where dropped ones
                                   // are replaced
  int64_t iteration_tokens = 0;    // all groups drawn in an iteration
  int64_t micro_batch_tokens = 0;  // the largest micro-batch that can come about
  int64_t in_flight_tokens = 0;    // the most that is ever in flight: the path's share, or less where the iterations that
                                   // can be open hold less
  int64_t open_iterations = 1;     // the most iterations of which tokens can be in flight at once
  int64_t tokens_needed = 0;       // the smallest share that cannot stall
  std::string needed_by;           // the node that needs it
};

/// What a rank that samples for others has begun at most, in budgets of its path, where credit is taken on demand.
constexpr int64_t kBudgetsInTheMaking = 3;

/// One source, its rollout if it has one, and all that is after them. Paths do not meet: they share executors and models.
struct PlanPath {
  int source = 0;              // indices into Plan::nodes
  std::optional<int> rollout;  // where there is none the source makes samples
  std::optional<int> refill;   // the filter that has dropped groups replaced, if there is one
  SourceSettings settings;
  int64_t tokens_in_flight = 0;    // its share of [budget]
  int64_t micro_batch_tokens = 0;  // the most that is packed together: that of [budget], or the share if that is less
  bool follows_versions = false;   // samples from a model that is trained here, on this path or on another
  int64_t policy_lag = 0;          // then, unless it measures: that of [schedule]
  PlanCapacity capacity;

  /// Index of the node that micro-batches come from.
  int maker() const { return rollout.value_or(source); }

  /// It trains nothing, and takes part only after some iterations: see SourceSettings.
  bool measures() const { return settings.measures(); }

  /// Whether it takes part in an iteration of a run of `iterations`. Where it does not, its nodes do not hear of it.
  bool is_due(int64_t iteration, int64_t iterations) const { return !measures() || settings.is_due(iteration, iterations); }

  /// The version of the weights that it samples with in an iteration; 0 where nothing is trained.
  int64_t version_for(int64_t iteration) const;
};

/// One key of the effective pipeline, for `plan --config` and the run folder.
struct EffectiveKey {
  std::string table;  // "budget", "nodes.generate"
  std::string key;
  std::string text;    // as TOML; empty: unset
  std::string origin;  // "default", "preset NAME", "--set" or FILE:LINE; after it, which keys within the value are the preset's
  bool harmless = false;         // ParamInfo::harmless
  std::string why = {};          // it is not although it mostly is, for people
  std::vector<ParamText> parts;  // of a component or a table: its keys; the text has them all
};

/// A pipeline that was proven: what every subcommand is a view of. Immutable; refers to the registry, which must outlive it.
struct Plan : RankLayout {
  PipelineSettings pipeline;
  BudgetSettings budget;
  ScheduleSettings schedule;
  RuntimeSettings runtime;
  CheckpointSettings checkpoint;
  LogSettings log;
  std::map<std::string, DeviceSettings> device_settings;     // [devices.NAME]
  CheckpointCopy checkpoint_copy = CheckpointCopy::kMemory;  // [checkpoint] copy, or chosen by the memory that there is
  std::vector<PlanNode> nodes;                               // in topological order; ties in the order of the file
  std::vector<PlanColumn> columns;                           // in order of their writers
  std::vector<PlanEdge> edges;
  std::vector<PlanModel> models;
  std::vector<PlanExecutor> executors;
  std::vector<PlanPath> paths;            // in the order of the file; at least one does not measure
  PlanMemory memory;                      // of a rank, on the host; with roles of the first one
  std::vector<PlanDevice> devices;        // likewise, those that its models are on, by name
  const ModelType* model_type = nullptr;  // loads the models; null when there are none
  std::vector<std::string> plugins;
  std::vector<EffectiveKey> effective;

  /// Of the ranks that compute passes together, those that have whole experts each of what is sampled from: 1, where all have
  /// columns alone.
  int sampling_expert_ranks(const ModelFacts& facts) const { return facts.is_mixture() && !has_roles() ? expert_ranks() : 1; }

  /// The role whose ranks compute a node's passes, or hold a model; null: none of forward_roles.
  const PlanRole* forward_role_of(const PlanNode& node) const;
  const PlanRole* forward_role_of(const PlanModel& model) const;

  /// Whether a rank has a node. Every rank that trains has the sources, since all of these draw all groups. It has those, too,
  /// whose passes a role computes: there it asks for them, and waits.
  bool has(int rank, int node) const;

  /// Whether a rank computes what the node does with models.
  bool computes(int rank, int node) const;

  /// What the nodes of a rank do with a model; nothing: they do not use it.
  std::optional<ModelUsage> usage_on(int rank, const PlanModel& model) const;

  /// Of [budget] or of the roles: tokens that are in flight on a rank for what it trains; on one that samples for what it makes;
  /// and of these those of a path.
  int64_t training_tokens() const { return has_roles() ? training_role().tokens_in_flight : tokens_of_all(); }
  int64_t making_tokens() const { return has_roles() ? sampling_role().tokens_in_flight : tokens_of_all(); }
  int64_t making_tokens(const PlanPath& path) const { return share_of(path, making_tokens()); }

  /// Whether ranks make groups of a path for others, where the path's share of the budget is so much: those that sample for those
  /// that train, or, without roles, all for each other; a rank then may have more groups than it has credit for at a time. It has
  /// one budget for what it makes, and one for what it trains, without roles as large as the other.
  bool shares_making(const PlanPath& path, int64_t share) const;
  bool shares_making(const PlanPath& path) const { return shares_making(path, path.tokens_in_flight); }
  bool shares_making() const;      // of some path
  int64_t token_capacity() const;  // of all budgets of a rank

  /// Whether a node is a rollout whose groups are admitted with less than they may become: it can, and [budget] says so.
  bool takes_on_demand(const PlanNode& node) const;

  /// By name. Null where there is none; the others throw InternalError.
  const PlanModel* find_model(const std::string& name) const;
  const PlanExecutor* find_executor(const std::string& name) const;
  const PlanModel& model(const std::string& name) const;
  const PlanExecutor& executor(const std::string& name) const;

  /// Of the node's executor; 1 where the plan has none of its name.
  int threads_of(const PlanNode& node) const;

  int index_of(const std::string& node) const;                            // -1: no such node
  const PlanPath& path_of(int node) const;                                // on which a node lies
  const PlanPath& main_path() const;                                      // the first that does not measure
  const PlanNode& maker_of(const PlanPath& path) const;                   // that micro-batches come from
  bool is_inside_rollout(int node) const;                                 // a source whose work is part of its rollout's
  int64_t share_of(const PlanPath& path, int64_t tokens) const;           // of a budget of so many tokens
  std::vector<TextCheck> text_checks(const PlanNode& writer) const;       // of its text columns, by nodes that read them
  std::optional<PromptLimit> prompt_limit(const PlanNode& source) const;  // of the rollout that takes its prompts, if one says
  std::vector<int> last_readers(const PlanColumn& column) const;  // those after which no other reader comes: with them it dies

 private:
  int64_t tokens_of_all() const { return whole ? whole->tokens_in_flight : budget.tokens_in_flight; }
};

}  // namespace sluice::engine
