#include "engine/schedule/driver.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/observe/engine_metrics.h"
#include "engine/observe/over_ranks.h"
#include "engine/schedule/agreed_end.h"

namespace sluice::engine {
namespace {

ColumnSlots slots_of(const Plan& plan) {
  ColumnSlots slots;
  for (const PlanColumn& column : plan.columns) slots.push_back(column.spec);
  return slots;
}

// Those that this rank samples from and others train.
std::map<std::string, std::shared_ptr<Model>> received_models(const Plan& plan, int rank, const Workload::Models& models) {
  std::map<std::string, std::shared_ptr<Model>> received;
  for (const PlanModel& model : plan.models) {
    const std::optional<ModelUsage> usage = plan.usage_on(rank, model);
    if (usage && usage->received) received.emplace(model.name, models.at(model.name));
  }
  return received;
}

}  // namespace

struct Driver::Impl {
  Impl(const Plan& plan, Parts parts);
  ~Impl() {
    agreed_end->forget();
    state.coming->forget();
    if (help) help->forget();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::deque<PathState> make_paths(const Plan& plan, const ReplaceableParts& seams);
  void open_gates();
  Intake::Parts intake_parts(size_t path);
  void start_intake(size_t path);
  void notify_intakes();
  MetricRow measured();
  Contribution own_contribution(int64_t iteration);
  void end_own(int64_t iteration);
  void report_own(const Reductions::Key& key, const Contribution& of_all);
  void close_iteration(IterationReport& report);
  void end_if_decided();
  void expect_early_ends();
  void drop_behind(int64_t last);
  RunStatus::Node status_of(size_t node) const;
  std::string waits_for(size_t node) const;
  Idle idle_reason(const std::string* executor) const;

  Workload workload;
  const std::function<void(const IterationReport&)> on_iteration;
  const std::function<MetricRow()> measure;
  const std::function<std::string()> tell;
  const std::function<void(const std::string&)> hear;
  mutable std::mutex notify_mutex;
  std::vector<Executor*> intake_executors;  // empty: none takes news
  std::deque<PathState> paths;              // behind what they call when credit returns, before all that hold credit
  RunState state;
  const int64_t begun;
  std::optional<StopRule> stop_rule;  // used under the lock of the log
  std::vector<std::unique_ptr<NodeRunner>> runners;
  std::vector<Executor*> executors;  // empty before start()
  std::unique_ptr<FlowGraph> graph;
  std::vector<std::unique_ptr<Intake>> intakes;  // by index of Plan::paths; empty before start()
  int64_t last_end_ns = 0;                       // of an iteration on this rank
  std::atomic<int64_t> most_in_flight{0}, most_column_bytes{0};
  const std::shared_ptr<AgreedEnd> agreed_end;
  const std::shared_ptr<MutualHelp> help;  // null: this rank makes its own groups
};

Driver::Impl::Impl(const Plan& plan, Parts parts)
    : workload(std::move(parts.workload)),
      on_iteration(std::move(parts.on_iteration)),
      measure(std::move(parts.measure)),
      tell(std::move(parts.tell)),
      hear(std::move(parts.hear)),
      paths(make_paths(plan, parts.seams)),
      state{.plan = plan,
            .clock = parts.clock,
            .reductions = parts.reductions,
            .world = world_of(plan, parts.reductions),
            .pending = {},
            .slots = slots_of(plan),
            .streams = FilterStreams(plan),
            .columns = {},
            .paths = paths,
            .progress = PathProgress(plan, parts.begun, [this] { notify_intakes(); }),
            .gates = {},
            .activity = Activity(plan, parts.clock, std::move(parts.observers)),
            .traffic = Traffic(plan),
            .failure = {},
            .log = IterationLog(
                plan.nodes.size() + 1, parts.begun, [this](IterationReport& report) { close_iteration(report); },
                [this](const IterationReport& report) {
                  if (on_iteration) on_iteration(report);
                },
                [this] { notify_intakes(); }),
            .own_ends = OwnEnds(plan.nodes.size(), [this](int64_t iteration) { end_own(iteration); }),
            .checkpointer = parts.checkpointer,
            .own_parts = parts.own_parts,
            .ending = IterationCutoff(parts.begun),
            .trained = {},
            .received = received_models(plan, world_of(plan, parts.reductions).rank, workload.models),
            .coming = std::make_shared<ComingVersions>(state.pending),
            .arrivals = {},
            .main_path = static_cast<int>(&plan.main_path() - plan.paths.data()),
            .iterations = plan.pipeline.iterations},
      begun(parts.begun),
      stop_rule(std::move(parts.stop_rule)),
      agreed_end(std::make_shared<AgreedEnd>(
          state.reductions, state.ending,
          AgreedEnd::Tells{.closed = [this] { expect_early_ends(); }, .agreed = [this](int64_t last) { drop_behind(last); }})),
      help(parts.links ? std::make_shared<MutualHelp>(plan, *parts.links, [this] { notify_intakes(); }) : nullptr) {
  end_if_decided();
  for (const PlanModel& model : plan.models) {
    if (model.usage.updated) state.trained[model.name].reach(begun);
  }
  open_gates();
  runners.resize(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].type->kind != NodeKind::kOrdinary) continue;
    runners[i] = std::make_unique<NodeRunner>(state, static_cast<int>(i), std::move(workload.parts[i]), workload.models);
  }
  agreed_end->listen();
  if (help) help->listen();
}

std::deque<PathState> Driver::Impl::make_paths(const Plan& plan, const ReplaceableParts& seams) {
  std::deque<PathState> made;
  const auto on_change = [this] { notify_intakes(); };
  for (const PlanPath& path : plan.paths) {
    const auto budget_of = [&](int64_t capacity) {
      return seams.budget ? seams.budget(capacity, on_change) : std::make_unique<TokenBudget>(capacity, on_change);
    };
    PathState::Budgets budgets;
    budgets.admitted = budget_of(path.rollout ? plan.making_tokens(path) : path.tokens_in_flight);
    if (plan.shares_making(path)) budgets.trained = budget_of(path.tokens_in_flight);
    made.emplace_back(path, std::move(budgets), plan.slots(), on_change);
  }
  return made;
}

// The versions that the run begins with are published.
void Driver::Impl::open_gates() {
  for (const PlanNode& node : state.plan.nodes) {
    for (const ModelNeed& need : node.needs.models) {
      if (need.use == ModelUse::kPublishes) state.gates.try_emplace(need.model, [this] { notify_intakes(); });
    }
  }
  for (auto& [model, gate] : state.gates) gate.publish(begun);
}

Intake::Parts Driver::Impl::intake_parts(size_t path) {
  const PlanPath& plan = state.plan.paths[path];
  Intake::Parts parts;
  parts.path = static_cast<int>(path);
  parts.begun = begun;
  const auto host = [this](int node, bool rewinds) {
    return std::make_unique<StageHost>(state, node, std::move(workload.parts[static_cast<size_t>(node)]), rewinds);
  };
  parts.source = host(plan.source, /*rewinds=*/plan.measures());
  if (plan.rollout) parts.rollout = host(*plan.rollout, /*rewinds=*/false);
  if (state.plan.shares_making(plan)) parts.help = help.get();
  return parts;
}

void Driver::Impl::start_intake(size_t path) {
  state.pending.enter();
  const auto emit = [this, path](Packet packet) { graph->emit(static_cast<int>(path), std::move(packet)); };
  intakes.push_back(std::make_unique<Intake>(state, intake_parts(path), emit, [this] { state.pending.leave(); }));
}

void Driver::Impl::notify_intakes() {
  const std::lock_guard lock(notify_mutex);
  for (Executor* executor : intake_executors) executor->notify();
}

// What this rank measures of itself, since the last iteration ended on it. What depends on timing is in time/, memory/ and engine/.
MetricRow Driver::Impl::measured() {
  const Plan& plan = state.plan;
  const BusySeconds busy = state.activity.take();
  const int64_t now = state.clock.now_ns();
  const double seconds = static_cast<double>(now - std::exchange(last_end_ns, now)) * 1e-9;
  int64_t tail_ns = 0, for_others = 0;
  for (const auto& intake : intakes) tail_ns += intake->take_tail_ns(), for_others += intake->take_groups_for_others();
  int64_t in_flight = 0;
  for (PathState& path : paths) in_flight += path.take_peak();
  const int64_t column_bytes = state.columns.take_peak();
  most_in_flight = std::max(most_in_flight.load(), in_flight);
  most_column_bytes = std::max(most_column_bytes.load(), column_bytes);
  MetricRow row{{metrics::kRolloutSeconds, busy.rollout}, {metrics::kTrainSeconds, busy.train},
                {metrics::kOverlapSeconds, busy.overlap}, {metrics::kTailSeconds, static_cast<double>(tail_ns) * 1e-9},
                {metrics::kIterationSeconds, seconds},    {metrics::kTokensInFlightMax, in_flight},
                {metrics::kColumnBytesMax, column_bytes}};
  if (plan.shares_making()) row.emplace_back(metrics::kGroupsForOthers, for_others);
  for (size_t i = 0; i < plan.executors.size(); ++i) {
    row.emplace_back(metrics::busy_seconds_of_executor(plan.executors[i].name), busy.of_executors[i]);
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!plan.is_inside_rollout(static_cast<int>(i)))
      row.emplace_back(metrics::busy_seconds_of_node(plan.nodes[i].name), busy.of_nodes[i]);
  }
  if (measure) std::ranges::move(measure(), std::back_inserter(row));
  return row;
}

// Behind it what the weights took that the iteration was sampled with: a rank that has sampled it has these.
Contribution Driver::Impl::own_contribution(int64_t iteration) {
  MetricRow row = measured();
  if (!metrics::sends_weights(state.plan)) return metrics::contribution_of(row);
  VersionArrivals::Rows weights = state.arrivals.take(state.plan.main_path().version_for(iteration));
  std::ranges::move(weights.of_rank, std::back_inserter(row));
  return metrics::contribution_of(row, weights.of_run);
}

// Its nodes have ended an iteration. What this rank has measured goes the way of what nodes record, as if it were one more.
void Driver::Impl::end_own(int64_t iteration) {
  if (!state.ending.enters(iteration)) return;
  const Reductions::Key key{
      .iteration = iteration, .node = static_cast<int>(state.plan.nodes.size()), .point = Reductions::Key::kMetrics};
  Contribution mine = own_contribution(iteration);
  if (state.world.rank > 0 && tell) state.reductions.give(key, tell());
  state.pending.enter();
  const auto report = [this, key](const Contribution& of_all) {
    try {
      report_own(key, of_all);
    } catch (...) {
      state.failure.capture("the report of iteration " + std::to_string(key.iteration));
    }
    state.pending.leave();
  };
  state.reductions.combine(key, std::move(mine), report);
}

void Driver::Impl::report_own(const Reductions::Key& key, const Contribution& of_all) {
  if (state.is_abandoned(key.iteration)) return;
  if (hear) std::ranges::for_each(state.reductions.take_given(key), hear);
  state.log.node_ended(key.iteration, static_cast<size_t>(key.node), metrics::row_over_ranks(of_all, state.world.size));
}

// Before the metrics of the nodes comes which line it is, behind them what the run as a whole has.
void Driver::Impl::close_iteration(IterationReport& report) {
  const Plan& plan = state.plan;
  const PlanPath& main = plan.main_path();
  const int64_t version = main.version_for(report.iteration);
  const double actions = report.metric(metrics::action_tokens(plan)), seconds = report.metric(metrics::kIterationSeconds);
  MetricRow& row = report.metrics;
  const auto of_run = std::ranges::find(row, std::string(metrics::kRolloutSeconds), &MetricRow::value_type::first);
  if (seconds > 0 && !std::isnan(actions)) row.emplace(of_run, metrics::action_tokens_per_second(plan), actions / seconds);
  const MetricRow which{{"iteration", report.iteration},
                        {"policy_version", version},
                        {"policy_lag", main.follows_versions ? report.iteration - version : 0}};
  row.insert(row.begin(), which.begin(), which.end());
  if (stop_rule) stop_rule->look_at(report.iteration, report.metric(stop_rule->metric()));
  end_if_decided();
}

// Iterations that may have begun by now are finished, so that it does not depend on timing which ones there are.
void Driver::Impl::end_if_decided() {
  if (!stop_rule || !stop_rule->decided_by()) return;
  const int64_t last = *stop_rule->decided_by() + state.plan.schedule.policy_lag;
  state.iterations = std::min(state.iterations.load(), std::max(begun, last + 1));
}

std::string Driver::Impl::waits_for(size_t node) const {
  const PlanNode& plan = state.plan.nodes[node];
  if (plan.type->kind != NodeKind::kOrdinary) {
    const bool takes_in = static_cast<int>(node) == state.plan.path_of(static_cast<int>(node)).maker();
    return takes_in ? intakes[static_cast<size_t>(plan.path)]->waits_for() : std::string();
  }
  const int index = static_cast<int>(node);
  if (std::string missing = graph->waits_for(index); !missing.empty()) return missing;
  if (const int64_t held = state.traffic.held(index); held > 0)
    return "the end of iteration " + std::to_string(intakes[static_cast<size_t>(plan.path)]->iteration());
  if (state.traffic.queued(index) == 0) return {};
  const int executor = executor_index(state.plan, plan.executor);
  const int busy_with = state.activity.current(executor).node;
  if (busy_with < 0) return "executor " + plan.executor + ", which does nothing";
  return "executor " + plan.executor + ", which works on '" + state.plan.nodes[static_cast<size_t>(busy_with)].name + "'";
}

RunStatus::Node Driver::Impl::status_of(size_t node) const {
  const int index = static_cast<int>(node);
  const PlanNode& plan = state.plan.nodes[node];
  const Traffic::Amount done = state.traffic.through(index);
  const bool at_work = state.activity.current(executor_index(state.plan, plan.executor)).node == index;
  return {.name = plan.name,
          .executor = plan.executor,
          .micro_batches = done.micro_batches,
          .tokens = done.tokens,
          .busy_seconds = state.activity.busy_seconds_of_node(index),
          .queued = state.traffic.queued(index),
          .held = state.traffic.held(index),
          .waits_for = at_work ? std::string() : waits_for(node)};
}

Driver::Driver(const Plan& plan, Parts parts) : impl_(std::make_unique<Impl>(plan, std::move(parts))) {}

Driver::~Driver() = default;

void Driver::start(const std::vector<Executor*>& executors) {
  Impl& impl = *impl_;
  impl.last_end_ns = impl.state.clock.now_ns();
  impl.graph = std::make_unique<FlowGraph>(impl.state, impl.runners, executors);
  for (size_t path = 0; path < impl.paths.size(); ++path) impl.start_intake(path);
  std::vector<Executor*> steppers;
  for (size_t path = 0; path < impl.paths.size(); ++path) {
    const auto source = static_cast<size_t>(impl.state.plan.paths[path].source);
    Executor* const executor =
        executors[static_cast<size_t>(executor_index(impl.state.plan, impl.state.plan.nodes[source].executor))];
    executor->add_stepper(impl.intakes[path].get());
    steppers.push_back(executor);
  }
  {
    const std::lock_guard lock(impl.notify_mutex);
    impl.executors = executors;
    impl.intake_executors = std::move(steppers);
  }
  impl.notify_intakes();
}

void Driver::forget_executors() {
  const std::lock_guard lock(impl_->notify_mutex);
  impl_->intake_executors.clear();
  impl_->executors.clear();
}

void Driver::let_everything_end() {
  for (auto& [model, gate] : impl_->state.gates) gate.published().abandon();
  for (auto& [model, milestone] : impl_->state.trained) milestone.abandon();
  impl_->state.coming->abandon();
  for (PathState& path : impl_->paths) path.version_wanted.abandon();
  impl_->state.reductions.abandon();
  impl_->notify_intakes();
}

void Driver::interrupt() {
  RunState& state = impl_->state;
  if (state.world.size > 1)
    state.asked_to_end = true;
  else
    state.interrupted = true;
  impl_->notify_intakes();
}

bool Driver::is_interrupted() const { return impl_->state.interrupted || impl_->state.asked_to_end; }

void Driver::drop_in_flight() { impl_->agreed_end->ask(); }

// Groups that other ranks drop do not come any more.
void Driver::Impl::expect_early_ends() {
  if (help) help->expect_early_ends();
}

// What waits for weights that will not be, or for what other ranks will not add, is handed to its executor, which drops it.
void Driver::Impl::drop_behind(int64_t last) {
  for (auto& [model, gate] : state.gates) gate.published().let_through(last + 1);
  for (auto& [model, milestone] : state.trained) milestone.let_through(last + 1);
  state.coming->drop_behind(last);
  state.reductions.abandon_behind(last);
  notify_intakes();
}

std::string Driver::stopped_because() const { return impl_->stop_rule ? impl_->stop_rule->reason() : std::string(); }

Activity& Driver::activity() { return impl_->state.activity; }
WorkInProgress& Driver::pending() { return impl_->state.pending; }
RunState& Driver::state() { return impl_->state; }

// Of the nodes on that executor, or of all.
Driver::Idle Driver::Impl::idle_reason(const std::string* executor) const {
  const Plan& plan = state.plan;
  const auto concerns = [&](size_t node) { return executor == nullptr || plan.nodes[node].executor == *executor; };
  Idle otherwise = Idle::kNoInput;
  for (size_t path = 0; path < plan.paths.size(); ++path) {
    if (!concerns(static_cast<size_t>(plan.paths[path].source))) continue;
    switch (intakes[path]->waiting()) {
      case Intake::Wait::kCredit:
        return Idle::kNoCredit;
      case Intake::Wait::kVersion:
      case Intake::Wait::kReports:
        return Idle::kNoWeights;
      case Intake::Wait::kOtherRank:
        otherwise = Idle::kNoGroups;
        break;
      case Intake::Wait::kNothing:
      case Intake::Wait::kVerdicts:
        break;
    }
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (concerns(i) && graph->waits_for_weights(static_cast<int>(i))) return Idle::kNoWeights;
  }
  return otherwise;
}

Driver::Idle Driver::idle_reason(int executor) const {
  return impl_->idle_reason(&impl_->state.plan.executors[static_cast<size_t>(executor)].name);
}

Driver::Idle Driver::idle_reason() const { return impl_->idle_reason(nullptr); }

Driver::Holdings Driver::holdings() const {
  const Impl& impl = *impl_;
  Holdings most{.column_bytes = std::max(impl.most_column_bytes.load(), impl.state.columns.live()), .pool = {}};
  for (const auto& intake : impl.intakes) {
    const Rollout::PoolBytes pool = intake->pool_bytes();
    most.pool.held += pool.held;
    most.pool.used += pool.used;
  }
  return most;
}

RunStatus Driver::status() const {
  const Impl& impl = *impl_;
  const Plan& plan = impl.state.plan;
  const int64_t now = impl.state.clock.now_ns();
  RunStatus status{.seconds = static_cast<double>(now) * 1e-9,
                   .iterations = plan.pipeline.iterations,
                   .iterations_done = impl.state.log.reported(),
                   .tokens_in_flight = impl.state.tokens_in_flight(),
                   .tokens_in_flight_peak = std::max(impl.most_in_flight.load(), impl.state.tokens_in_flight()),
                   .budget = plan.token_capacity(),
                   .column_bytes = impl.state.columns.live(),
                   .column_bytes_peak = std::max(impl.most_column_bytes.load(), impl.state.columns.live())};
  if (impl.intakes.empty()) return status;
  const Intake& main = *impl.intakes[static_cast<size_t>(impl.state.main_path)];
  status.sampling_iteration = main.iteration();
  status.running_samples = main.running_samples();
  for (size_t i = 0; i < plan.executors.size(); ++i) {
    const Activity::Current current = impl.state.activity.current(static_cast<int>(i));
    const double since = current.node < 0 ? 0 : static_cast<double>(std::max<int64_t>(0, now - current.since_ns)) * 1e-9;
    status.executors.push_back({.name = plan.executors[i].name,
                                .threads = plan.executors[i].threads,
                                .working_on = current.node < 0 ? "" : plan.nodes[static_cast<size_t>(current.node)].name,
                                .for_seconds = since,
                                .busy_seconds = impl.state.activity.busy_seconds_of_executor(static_cast<int>(i)) + since,
                                .queued = 0});
  }
  {
    const std::lock_guard lock(impl.notify_mutex);
    for (size_t i = 0; i < impl.executors.size(); ++i)
      status.executors[i].queued = static_cast<int64_t>(impl.executors[i]->queued());
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) status.nodes.push_back(impl.status_of(i));
  for (size_t e = 0; e < plan.edges.size(); ++e) {
    const Traffic::Amount amount = impl.state.traffic.on_edge(e);
    status.edges.push_back({.from = plan.nodes[static_cast<size_t>(plan.edges[e].from)].name,
                            .to = plan.nodes[static_cast<size_t>(plan.edges[e].to)].name,
                            .micro_batches = amount.micro_batches,
                            .tokens = amount.tokens,
                            .bytes = amount.bytes});
  }
  return status;
}

}  // namespace sluice::engine
