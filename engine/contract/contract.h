#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/contract/columns/column.h"
#include "engine/contract/columns/text_check.h"
#include "engine/contract/params/param_set.h"
#include "engine/contract/world/metric_spec.h"

namespace sluice::engine {

/// How a node uses a model.
enum class ModelUse {
  kReads,      // its live weights; a source: its text alone, tokenizer and chat template
  kSamples,    // its published weights
  kUpdates,    // trains it
  kAverages,   // trains the model that it is a moving average of; a check notes it, no contract says it
  kPublishes,  // makes the live weights the next published version
};

const char* name_of(ModelUse use);

/// What a node works on at once. A node of iteration scope is a barrier: nothing leaves before everything is in.
enum class Scope { kMicroBatch, kIteration };

struct ModelNeed {
  std::string param;  // the key that names the model
  std::string model;  // the name that was given
  ModelUse use = ModelUse::kReads;
  std::string head;             // "language_model" or "value"; empty: any
  bool expects_frozen = false;  // it works, but hardly as meant, if some node trains the model
};

/// A file of the run folder that a node writes.
struct FileNeed {
  std::string param;  // the key that names the file
  std::string path;   // relative to the run folder
};

/// Columns of which a node reads the first that some node before it writes.
struct ReadsChoice {
  std::vector<ColumnSpec> columns;
  bool required = false;  // one of them must be there
};

/// Which prompts a rollout takes. Others end the run when they are drawn, so a source tells of them before.
struct PromptLimit {
  int64_t tokens = 0;               // the longest; an empty one it never takes
  bool leaves_out_longer = false;   // and the run goes on
  std::optional<bool> add_special;  // whether the tokenizer adds its tokens; unset: but to a conversation, which has them
  // The plan fills these in: the rollout, and the model that it samples with the folder of its tokenizer.
  std::string node, model;
  std::filesystem::path folder;
};

/// A contract with given parameters: what the checks and the plan work on.
struct NodeNeeds {
  std::vector<ColumnSpec> reads;
  std::vector<ReadsChoice> choices;    // the checks settle them: what is read joins `reads`, and MicroBatch::has() tells it
  std::vector<std::string> reads_any;  // columns of whatever type their writers give them; likewise, see MicroBatch::column()
  std::vector<ColumnSpec> writes;
  std::set<std::string> by_products;  // of what it writes: columns that may well stay unread
  std::vector<ModelNeed> models;
  Scope scope = Scope::kMicroBatch;
  std::string scope_reason;          // why it is a barrier: `whiten = "iteration"`
  int64_t groups_per_iteration = 0;  // sources
  int64_t samples_per_group = 0;     // sources and rollouts, whichever makes the samples
  int64_t worst_sample_tokens = 0;   // likewise: prompt and response; of others where they compute longer ones than are made
  int64_t least_sample_tokens = 1;   // the least credit that a sample is admitted with
  int64_t on_demand_tokens = 0;      // rollouts: likewise where credit is taken on demand; 0: it takes the worst case at once
  int64_t shared_prompt_tokens = 0;  // rollouts: the longest prompt, if its KV blocks are stored once for a group; else 0
  std::optional<PromptLimit> prompt_limit;  // rollouts
  int64_t least_samples = 1;                // of a group: with fewer the node has nothing to compare
  int64_t side_samples = 0;     // rollouts: samples that are made beside those of each group and do not travel with it, such
                                // as a baseline; they take credit like the others, until they end
  bool drops_groups = false;    // a filter: groups that it drops do not reach the nodes after it
  int64_t most_draws = 1;       // filters: groups drawn in an iteration are at most so many times groups_per_iteration;
                                // above 1 what is dropped is replaced until groups_per_iteration groups were kept
  double oversample = 1;        // filters: so many times the groups that are still missing are drawn in each round
  int64_t step_tokens = 0;      // rollouts: the most tokens that one step works on
  int64_t running_samples = 0;  // rollouts: the most samples that run at once; 0: only their tokens limit them
  std::map<std::string, int64_t> string_bytes;  // of string columns it writes: the most bytes of one entry's text
  std::vector<TextCheck> text_checks;           // of string columns it reads
  std::vector<FileNeed> files;                  // of the run folder, that it writes
  std::vector<MetricSpec> metrics;              // all that it may record
  std::vector<std::string> totals;              // likewise add up over all ranks; see Totals
  int64_t steps = 1;                            // barriers: calls of gather() and process_iteration() in an iteration
  // Trainers: the key of the setting by which samples of older weights than those that are trained would give wrong gradients,
  // such as an objective without a ratio. Empty: it corrects for them.
  std::string uncorrected_by;
  // Trainers: the key of the setting that demands samples of the very weights that are trained, and log-probabilities that are
  // the same bits when they are computed again. Empty: nothing is demanded.
  std::string exact_by;
  // Nodes that write or read where the routers of their first model sent the tokens of a sample: the key of the setting, and the
  // column, of strings, which holds ModelFacts::route_bytes_per_token for each token. Empty: they do not.
  std::string routes_by, routes_column;
  // Settings that all nodes which state them must have alike, in every iteration, such as the temperature.
  std::map<std::string, ScheduledNumber> must_agree;
  std::vector<NamedSchedule> schedules;  // its scheduled parameters
};

class DataLook;

/// Findings of a contract's own check.
class Findings {
 public:
  /// `changed` tells whether a key has another value than its default.
  Findings(const Table& table, Problems& problems, std::function<bool(std::string_view)> changed)
      : table_(table), problems_(problems), changed_(std::move(changed)) {}

  /// True if the pipeline writes the key with another value than its default, which is that of the preset if there is one. An
  /// effective pipeline has every default written out, and is as valid as the one that it came from.
  bool changed(std::string_view key) const { return table_.find(key) != nullptr && changed_(key); }

  /// The node cannot work with the value of `key`.
  void error(std::string_view key, std::string message, std::string help = {}) {
    add("setting-unusable", Severity::kError, key, message, help);
  }

  /// Likewise, with what was thrown when its value was used.
  void error(std::string_view key, const UserError& error) { this->error(key, error.message(), error.help()); }

  /// `key` is changed(), but beside the other settings that makes no difference.
  void without_effect(std::string_view key, std::string message, std::string help = {}) {
    add("setting-without-effect", Severity::kError, key, message, help);
  }

  /// Likewise, because of what is written for `other`, whose line is named too.
  void without_effect_beside(std::string_view key, std::string_view other, std::string message, std::string help);

  /// It works, but is hardly what was meant.
  void warning(std::string_view key, std::string message, std::string help = {}) {
    add("setting-doubtful", Severity::kWarning, key, message, help);
  }

 private:
  void add(const char* kind, Severity severity, std::string_view key, const std::string& message, const std::string& help);

  const Table& table_;
  Problems& problems_;
  std::function<bool(std::string_view)> changed_;
};

/// The part of a contract that does not depend on the parameter struct: what `describe` and the docs print.
struct ContractInfo {
  std::string type;
  std::string summary;
  std::vector<ParamInfo> params;
  std::vector<MetricSpec> metrics;  // with names as the docs show them
};

/// What the engine records of each iteration where the parameter `key` is scheduled.
MetricSpec metric_of_schedule(const std::string& metric, const std::string& key);

/// Adds those of `needs.schedules` that change.
void declare_schedules(NodeNeeds& needs);

/// The one description of a node type: a type's static `describe(Contract<P>&)` fills it. TOML binding, checks, plan, graph
/// labels, `rlhf-run describe` and docs/nodes.md all come from it.
template <class P>
class Contract : public ParamSet<P> {
 public:
  void type(std::string name, std::string summary) { name_ = std::move(name), summary_ = std::move(summary); }

  template <class... T>
  void reads(const Column<T>&... columns) {
    add([=](const P&, NodeNeeds& needs) { (needs.reads.push_back(columns.spec()), ...); });
  }

  template <std::predicate<const P&> When, class... T>
  void reads_if(When when, const Column<T>&... columns) {
    add([=](const P& params, NodeNeeds& needs) {
      if (when(params)) (needs.reads.push_back(columns.spec()), ...);
    });
  }

  /// Reads the first of the columns that some node before this one writes; one of them must be there.
  template <class... T>
  void reads_first_of(const Column<T>&... columns) {
    add([=](const P&, NodeNeeds& needs) { needs.choices.push_back({{columns.spec()...}, true}); });
  }

  /// Reads each of the columns if some node before this one writes it.
  template <class... T>
  void reads_if_written(const Column<T>&... columns) {
    add([=](const P&, NodeNeeds& needs) { (needs.choices.push_back({{columns.spec()}, false}), ...); });
  }

  template <class... T>
  void writes(const Column<T>&... columns) {
    add([=](const P&, NodeNeeds& needs) { (needs.writes.push_back(columns.spec()), ...); });
  }

  template <std::predicate<const P&> When, class... T>
  void writes_if(When when, const Column<T>&... columns) {
    add([=](const P& params, NodeNeeds& needs) {
      if (when(params)) (needs.writes.push_back(columns.spec()), ...);
    });
  }

  /// Written like the others, but nobody is warned when no node reads them.
  template <class... T>
  void writes_by_product(const Column<T>&... columns) {
    writes(columns...);
    add([=](const P&, NodeNeeds& needs) { (needs.by_products.insert(columns.name), ...); });
  }

  template <std::predicate<const P&> When, class... T>
  void writes_by_product_if(When when, const Column<T>&... columns) {
    writes_if(when, columns...);
    add([=](const P& params, NodeNeeds& needs) {
      if (when(params)) (needs.by_products.insert(columns.name), ...);
    });
  }

  /// Columns whose names are parameters.
  void reads_named(std::string P::*name, DType dtype, Extent extent) {
    add([=](const P& params, NodeNeeds& needs) { needs.reads.push_back({params.*name, dtype, extent}); });
  }
  void writes_named(std::string P::*name, DType dtype, Extent extent) {
    add([=](const P& params, NodeNeeds& needs) { needs.writes.push_back({params.*name, dtype, extent}); });
  }

  /// Columns of any type, whose names are a parameter.
  void reads_any(std::vector<std::string> P::*names) {
    add([=](const P& params, NodeNeeds& needs) { needs.reads_any = params.*names; });
  }

  /// A parameter that names a model. An empty name (an optional model that is not given) uses none.
  ParamBuilder model(std::string param, std::string P::*member, ModelUse use, std::string head = {}) {
    add([=](const P& params, NodeNeeds& needs) {
      if (!(params.*member).empty()) needs.models.push_back({param, params.*member, use, head});
    });
    return this->param(param, member);
  }

  /// A barrier when `when` holds; `reason` names the setting that makes it one.
  template <std::predicate<const P&> When>
  void iteration_scope_if(When when, std::string reason) {
    add([=](const P& params, NodeNeeds& needs) {
      if (when(params)) needs.scope = Scope::kIteration, needs.scope_reason = reason;
    });
  }

  /// A filter: its process() may call MicroBatch::drop_group().
  void drops_groups() {
    add([](const P&, NodeNeeds& needs) { needs.drops_groups = true; });
  }

  /// Anything else that depends on the parameters (groups_per_iteration, worst_sample_tokens, ...).
  template <std::invocable<const P&, NodeNeeds&> Fill>
  void needs(Fill fill) {
    add(fill);
  }

  /// Settings that are wrong together or have no effect.
  template <std::invocable<const P&, Findings&> Check>
  void check(Check check) {
    checks_.push_back(check);
  }

  /// How a source looks at its data before a run, without loading a model; see DataLook. May throw UserError.
  template <std::invocable<const P&, DataLook&> Look>
  void data(Look look) {
    looks_.push_back(look);
  }

  /// A metric that nodes of the type record; see MetricSpec. To record any other is an error.
  void metric(const std::string& name, Metric kind, std::string doc) {
    metrics(name, kind, std::move(doc), [name](const P&) { return std::vector{name}; });
  }

  /// A metric that is recorded only where `when` holds.
  template <std::predicate<const P&> When>
  void metric_if(When when, const std::string& name, Metric kind, std::string doc) {
    metrics(name, kind, std::move(doc),
            [=](const P& params) { return when(params) ? std::vector{name} : std::vector<std::string>(); });
  }

  /// A metric that is recorded only where `when` holds and the model that the key `model` names is a mixture of experts
  /// (ModelFacts::is_mixture()).
  template <std::predicate<const P&> When>
  void metric_of_mixture(std::string model, When when, const std::string& name, Metric kind, std::string doc) {
    const MetricSpec metric{.name = name, .kind = kind, .doc = std::move(doc), .of_mixture = std::move(model)};
    metrics_.push_back(metric);
    add([=](const P& params, NodeNeeds& needs) {
      if (when(params)) needs.metrics.push_back(metric);
    });
  }

  /// Metrics whose names, a list of strings, follow from the parameters; the docs show them as `shown` ("reward/COLUMN_margin").
  template <std::invocable<const P&> Names>
  void metrics(std::string shown, Metric kind, std::string doc, Names names) {
    metrics_.push_back({.name = std::move(shown), .kind = kind, .doc = doc});
    add([=](const P& params, NodeNeeds& needs) {
      for (const std::string& name : names(params)) needs.metrics.push_back({.name = name, .kind = kind, .doc = doc});
    });
  }

  /// Means whose names a user's function makes up as it runs. They begin with `beginning`, such as "reward/NODE/".
  void metric_family(const std::string& beginning, const std::string& doc) {
    const MetricSpec family{.name = beginning, .doc = doc, .is_family = true};
    metrics_.push_back(family);
    add([=](const P&, NodeNeeds& needs) { needs.metrics.push_back(family); });
  }

  /// Those that a component declares.
  template <class Base>
  void metrics_of(Component<Base> P::*component) {
    metrics_of_if([](const P&) { return true; }, component);
  }
  template <std::predicate<const P&> When, class Base>
  void metrics_of_if(When when, Component<Base> P::*component) {
    add([=](const P& params, NodeNeeds& needs) {
      const std::vector<MetricSpec>& metrics = (params.*component).metrics;
      if (when(params)) needs.metrics.insert(needs.metrics.end(), metrics.begin(), metrics.end());
    });
  }

  /// A number that nodes of the type add up over all ranks; see Totals. `when`: of which parameters.
  void total(const std::string& name) {
    total_if([](const P&) { return true; }, name);
  }
  template <std::predicate<const P&> When>
  void total_if(When when, const std::string& name) {
    add([=](const P& params, NodeNeeds& needs) {
      if (when(params)) needs.totals.push_back(name);
    });
  }

  /// How often a barrier gathers and processes in an iteration; see Node::gather().
  template <std::invocable<const P&> Steps>
  void steps(Steps steps) {
    add([=](const P& params, NodeNeeds& needs) { needs.steps = steps(params); });
  }

  ContractInfo info() const {
    ContractInfo info{name_, summary_, this->erased().infos(), metrics_};
    for (const ParamInfo& param : info.params) {
      if (!param.metric.empty()) info.metrics.push_back(metric_of_schedule(param.metric, param.name));
    }
    return info;
  }

  NodeNeeds needs_of(const P& params) const {
    NodeNeeds needs;
    for (const auto& fill : fills_) fill(params, needs);
    needs.schedules = this->erased().schedules(&params);
    declare_schedules(needs);
    return needs;
  }

  void run_checks(const P& params, Findings& findings) const {
    for (const auto& check : checks_) check(params, findings);
  }

  bool has_data() const { return !looks_.empty(); }
  void look_at_data(const P& params, DataLook& data) const {
    for (const auto& look : looks_) look(params, data);
  }

 private:
  void add(std::function<void(const P&, NodeNeeds&)> fill) { fills_.push_back(std::move(fill)); }

  std::string name_;
  std::string summary_;
  std::vector<MetricSpec> metrics_;
  std::vector<std::function<void(const P&, NodeNeeds&)>> fills_;
  std::vector<std::function<void(const P&, Findings&)>> checks_;
  std::vector<std::function<void(const P&, DataLook&)>> looks_;
};

}  // namespace sluice::engine
