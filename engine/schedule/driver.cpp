#include "engine/schedule/driver.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/observe/engine_metrics.h"
#include "engine/schedule/driver_impl.h"
#include "engine/schedule/help/askers.h"

namespace sluice::engine {
namespace {

ColumnSpecs specs_of(const Plan& plan) {
  ColumnSpecs specs;
  for (const PlanColumn& column : plan.columns) specs.push_back(column.spec);
  return specs;
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

std::vector<int> ranks_that_sample(const Plan& plan) {
  std::vector<int> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank)
    if (plan.samples(rank)) ranks.push_back(rank);
  return ranks;
}

}  // namespace

Driver::Impl::Impl(const Plan& plan, Parts parts)
    : workload(std::move(parts.workload)),
      on_iteration(std::move(parts.on_iteration)),
      measure(std::move(parts.measure)),
      tell(std::move(parts.tell)),
      hear(std::move(parts.hear)),
      paths(make_paths(plan, parts.replaced)),
      roll_call(plan.has_roles() ? std::make_shared<RollCall>(parts.links.value().mail, ranks_that_sample(plan), parts.begun)
                                 : nullptr),
      state{.plan = plan,
            .clock = parts.clock,
            .reductions = parts.reductions,
            .world = world_of(plan, parts.reductions),
            .in_progress = {},
            .column_specs = specs_of(plan),
            .filter_streams = FilterStreams(plan),
            .columns = {},
            .paths = paths,
            .progress = PathProgress(plan, parts.begun, [this] { notify_intakes(); }),
            .gates = {},
            .activity = Activity(plan, parts.clock, std::move(parts.observers)),
            .traffic = Traffic(plan),
            .failure = {},
            .log = IterationLog(
                plan.trains(parts.reductions.world().rank) ? plan.nodes.size() + 1 : 1, parts.begun,
                [this](IterationReport& report) { close_iteration(report); },
                [this](const IterationReport& report) {
                  if (on_iteration) on_iteration(report);
                },
                [this] { notify_intakes(); }),
            .own_ends = OwnEnds(plan.nodes.size(), [this](int64_t iteration) { end_own(iteration); }),
            .checkpointer = parts.checkpointer,
            .own_parts = parts.own_parts,
            .cutoff = IterationCutoff(parts.begun),
            .trained = {},
            .received = received_models(plan, world_of(plan, parts.reductions).rank, workload.models),
            .coming = std::make_shared<ComingVersions>(state.in_progress),
            .roll_call = parts.reductions.world().rank == 0 ? roll_call : nullptr,
            .samplers = nullptr,
            .arrivals = {},
            .main_path = static_cast<int>(&plan.main_path() - plan.paths.data()),
            .iterations = plan.pipeline.iterations},
      begun(parts.begun),
      first_version(parts.first_version),
      stop_rule(std::move(parts.stop_rule)),
      agreed_end(
          std::make_shared<AgreedEnd>(state.reductions, state.cutoff,
                                      AgreedEnd::Tells{.closed = [this] { expect_early_ends(); },
                                                       .agreed =
                                                           [this](int64_t last, bool cut_short, const std::string& because) {
                                                             if (cut_short) expect_no_samplers(because);
                                                             drop_behind(last);
                                                           },
                                                       .cut_short_because = [this] { return why_cut_short(); }})),
      help(parts.links ? std::make_unique<MutualHelp>(
                             plan, *parts.links, [this] { notify_intakes(); }, asker_events())
                       : nullptr),
      returning(samplers_may_be_lost() && state.world.rank == 0 ? std::make_shared<ReturningRanks>(parts.links->mail) : nullptr) {
  end_if_decided();
  for (const PlanModel& model : plan.models) {
    if (model.usage.updated) state.trained[model.name].reach(begun);
  }
  open_gates();
  runners.resize(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].type->kind != NodeKind::kOrdinary || !state.world.owns_slots()) continue;
    runners[i] = std::make_unique<NodeRunner>(state, static_cast<int>(i), std::move(workload.parts[i]), workload.models);
  }
  if (!state.world.owns_slots()) {
    sampling.emplace(state, SamplingRank::Parts{.roll_call = *roll_call,
                                                .begun = begun,
                                                .first_version = first_version,
                                                .measure = [this](int64_t iteration) { return own_contribution(iteration); },
                                                .tell = tell,
                                                .changed = [this] { notify_intakes(); }});
  }
  agreed_end->listen();
  if (roll_call) roll_call->listen([this] { state.asked_to_end = true; });
  if (help) help->listen();
  watch_samplers(parts.links);
}

void Driver::Impl::watch_samplers(const std::optional<RankLinks>& links) {
  if (!samplers_may_be_lost() || sampling) return;
  samplers_there.emplace(state, SamplersThere::Parts{.begun = begun,
                                                     .owner = help->owner(),
                                                     .roll_call = *roll_call,
                                                     .publications = *links->publications,
                                                     .returning = returning,
                                                     .drop_in_flight = [this] { agreed_end->ask(); }});
  state.samplers = &*samplers_there;
  if (returning) returning->listen();
}

GroupAsker::Events Driver::Impl::asker_events() {
  GroupAsker::Events events;
  events.holds = [this](int64_t bytes) { bytes < 0 ? state.columns.remove(-bytes) : state.columns.add(bytes); };
  events.news = [this](int path, int owner, const OwnerNews& news) { sampling->hear(path, owner, news); };
  events.refused = [this](int path, const OwnersSeen::Offer& offer) {
    if (sampling) sampling->be_refused(path, offer);
  };
  events.ends_behind = [this](int64_t last) {
    expect_early_ends();
    sampling->end_behind(last);
  };
  return events;
}

std::deque<PathState> Driver::Impl::make_paths(const Plan& plan, const ReplaceableParts& replaced) {
  std::deque<PathState> made;
  const auto on_change = [this] { notify_intakes(); };
  for (const PlanPath& path : plan.paths) {
    const auto budget_of = [&](int64_t capacity) {
      return replaced.budget ? replaced.budget(capacity, on_change) : std::make_unique<TokenBudget>(capacity, on_change);
    };
    PathState::Budgets budgets;
    budgets.admitted = budget_of(path.rollout ? plan.making_tokens(path) : path.tokens_in_flight);
    if (plan.shares_making(path)) budgets.trained = budget_of(path.tokens_in_flight);
    made.emplace_back(path, std::move(budgets), plan.slots(), on_change);
  }
  return made;
}

// The versions that the run begins with are published, or those before the first that this rank gets: it samples with none of
// them.
void Driver::Impl::open_gates() {
  for (const PlanNode& node : state.plan.nodes) {
    for (const ModelNeed& need : node.needs.models) {
      if (need.use == ModelUse::kPublishes) state.gates.try_emplace(need.model, [this] { notify_intakes(); });
    }
  }
  for (auto& [model, gate] : state.gates) gate.publish(first_version ? *first_version - 1 : begun);
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
  parts.help = help.get();
  if (state.plan.has_roles()) parts.samplers = samplers();
  return parts;
}

void Driver::Impl::start_path(size_t path) {
  const auto finished = [this] { state.in_progress.leave(); };
  std::unique_ptr<PathHead>& head = heads.emplace_back();
  const std::optional<int> rollout = state.plan.paths[path].rollout;
  if (sampling && !rollout) return;
  state.in_progress.enter();
  const auto emit = [this, path](Packet packet) { graph->emit(static_cast<int>(path), std::move(packet)); };
  if (sampling)
    head = sampling->worker(static_cast<int>(path), std::move(workload.parts[static_cast<size_t>(*rollout)]), help->asker(),
                            finished);
  else
    head = std::make_unique<Intake>(state, intake_parts(path), emit, finished);
}

void Driver::Impl::notify_intakes() {
  const std::lock_guard lock(notify_mutex);
  for (Executor* executor : intake_executors) executor->notify();
}

Driver::Driver(const Plan& plan, Parts parts) : impl_(std::make_unique<Impl>(plan, std::move(parts))) {}

Driver::~Driver() = default;

void Driver::start(const std::vector<Executor*>& executors) {
  Impl& impl = *impl_;
  impl.last_end_ns = impl.state.clock.now_ns();
  if (!impl.sampling) impl.graph = std::make_unique<FlowGraph>(impl.state, impl.runners, executors);
  for (size_t path = 0; path < impl.paths.size(); ++path) impl.start_path(path);
  std::vector<Executor*> steppers;
  for (size_t path = 0; path < impl.paths.size(); ++path) {
    if (!impl.heads[path]) continue;
    const auto source = static_cast<size_t>(impl.state.plan.paths[path].source);
    Executor* const executor =
        executors[static_cast<size_t>(executor_index(impl.state.plan, impl.state.plan.nodes[source].executor))];
    executor->add_stepper(impl.heads[path].get());
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
  impl_->workload.outside->drop_behind(-1);
  for (auto& [model, gate] : impl_->state.gates) gate.published().abandon();
  for (auto& [model, milestone] : impl_->state.trained) milestone.abandon();
  impl_->state.coming->abandon();
  for (PathState& path : impl_->paths) path.version_wanted.abandon();
  if (impl_->roll_call) impl_->roll_call->abandon();
  impl_->state.reductions.abandon();
  impl_->notify_intakes();
}

void Driver::interrupt() {
  RunState& state = impl_->state;
  if (impl_->sampling) impl_->roll_call->tell_of_interrupt();
  if (state.world.size > 1)
    state.asked_to_end = true;
  else
    state.interrupted = true;
  impl_->notify_intakes();
}

bool Driver::is_interrupted() const { return impl_->state.interrupted || impl_->state.asked_to_end; }

// To a rank that only samples too, others of them make no difference.
void Driver::lose(int rank, const std::string& why) {
  if (impl_->samplers_there)
    impl_->samplers_there->lose(rank, why);
  else
    ++impl_->state.lost_ranks;
}

void Driver::take_back(int rank, int64_t incarnation) {
  if (impl_->samplers_there)
    impl_->samplers_there->take_back(rank, incarnation);
  else
    --impl_->state.lost_ranks;
}

void Driver::end_waiting() {
  if (impl_->returning) impl_->returning->end();
}

// A rank that only samples ends when the others have agreed.
void Driver::drop_in_flight() {
  if (!impl_->sampling) impl_->agreed_end->ask();
}

// Groups that other ranks drop do not come any more.
void Driver::Impl::expect_early_ends() {
  if (help) help->expect_early_ends();
}

std::optional<std::string> Driver::Impl::why_cut_short() const {
  try {
    state.cut_short.rethrow();
    return std::nullopt;
  } catch (const UserError& error) {
    return error.message();
  }
}

// Some rank that trains knows that none is left, and all of these have agreed on it.
void Driver::Impl::expect_no_samplers(const std::string& because) {
  SamplersThere::note_none_is_left(state, because.empty() ? "no rank is left that samples the next iteration" : because);
  state.no_sampler_comes = true;
}

// What waits for weights that will not be, or for what other ranks will not add, is handed to its executor, which drops it.
void Driver::Impl::drop_behind(int64_t last) {
  workload.outside->drop_behind(last);
  for (auto& [model, gate] : state.gates) gate.published().let_through(last + 1);
  for (auto& [model, milestone] : state.trained) milestone.let_through(last + 1);
  state.coming->drop_behind(last);
  if (roll_call) {
    help->owner().announce_end_behind(samplers(), last);
    roll_call->abandon_behind(last);
  }
  state.reductions.abandon_behind(last);
  notify_intakes();
}

std::string Driver::stopped_because() const { return impl_->stop_rule ? impl_->stop_rule->reason() : std::string(); }

int64_t Driver::work_done() const { return impl_->state.work_done() + impl_->workload.outside->looks(); }

bool Driver::wait_for_calls(std::chrono::milliseconds longest) const { return impl_->workload.outside->wait_for_calls(longest); }

std::string Driver::call_under_way() const {
  for (const PlanNode& node : impl_->state.plan.nodes) {
    const std::string what = impl_->workload.outside->waits_for(node.name);
    if (!what.empty()) return "'" + node.name + "' waits for " + what;
  }
  return {};
}

Activity& Driver::activity() { return impl_->state.activity; }
WorkInProgress& Driver::in_progress() { return impl_->state.in_progress; }
RunState& Driver::state() { return impl_->state; }

}  // namespace sluice::engine
