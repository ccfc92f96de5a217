#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/columns/column.h"
#include "engine/contract/findings.h"
#include "engine/contract/node_needs.h"
#include "engine/contract/params/param_set.h"
#include "engine/contract/world/metric_spec.h"

namespace sluice::engine {

class DataLook;

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
