#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "engine/observe/engine_metrics.h"
#include "engine/observe/over_ranks.h"
#include "engine/schedule/driver_impl.h"

// What a run says of an iteration beside what its nodes record: what each rank has measured, and what the iteration has as a
// whole.
namespace sluice::engine {

// What this rank measures of itself, since the last iteration ended on it. What depends on timing is in time/, memory/ and
// engine/.
MetricRow Driver::Impl::measured() {
  const Plan& plan = state.plan;
  const BusySeconds busy = state.activity.take();
  const int64_t now = state.clock.now_ns();
  const double seconds = static_cast<double>(now - std::exchange(last_end_ns, now)) * 1e-9;
  int64_t tail_ns = 0, for_others = 0;
  for (const auto& head : heads) {
    if (!head) continue;
    tail_ns += head->take_tail_ns();
    for_others += head->take_groups_for_others();
  }
  int64_t in_flight = 0;
  for (PathState& path : paths) in_flight += path.take_peak();
  const int64_t column_bytes = state.columns.take_peak();
  most_in_flight = std::max(most_in_flight.load(), in_flight);
  most_column_bytes = std::max(most_column_bytes.load(), column_bytes);
  // What only ranks of another role do is none of the mean.
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const int rank = state.world.rank;
  MetricRow row{{metrics::kRolloutSeconds, plan.samples(rank) ? busy.rollout : kNone},
                {metrics::kTrainSeconds, plan.trains(rank) ? busy.train : kNone},
                {metrics::kOverlapSeconds, busy.overlap},
                {metrics::kTailSeconds, plan.samples(rank) ? static_cast<double>(tail_ns) * 1e-9 : kNone},
                {metrics::kIterationSeconds, seconds},
                {metrics::kTokensInFlightMax, in_flight},
                {metrics::kColumnBytesMax, column_bytes}};
  if (plan.shares_making()) row.emplace_back(metrics::kGroupsForOthers, for_others);
  if (plan.expendable().any()) row.emplace_back(metrics::kLostRanks, state.lost_ranks);
  for (size_t i = 0; i < plan.executors.size(); ++i) {
    row.emplace_back(metrics::busy_seconds_of_executor(plan.executors[i].name), busy.of_executors[i]);
  }
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const int node = static_cast<int>(i);
    if (!plan.is_inside_rollout(node))
      row.emplace_back(metrics::busy_seconds_of_node(plan.nodes[i].name), plan.has(rank, node) ? busy.of_nodes[i] : kNone);
  }
  if (measure) std::ranges::move(measure(), std::back_inserter(row));
  return row;
}

// After it what the weights took that the iteration was sampled with: a rank that has sampled it has these.
Contribution Driver::Impl::own_contribution(int64_t iteration) {
  MetricRow row = measured();
  if (!metrics::sends_weights(state.plan)) return metrics::contribution_of(row);
  VersionArrivals::Rows weights = state.arrivals.take(state.plan.main_path().version_for(iteration));
  std::ranges::move(weights.of_rank, std::back_inserter(row));
  return metrics::contribution_of(row, weights.of_run);
}

// Its nodes have ended an iteration. What this rank has measured goes the way of what nodes record, as if it were one more.
void Driver::Impl::end_own(int64_t iteration) {
  if (!state.cutoff.enters(iteration)) return;
  const Reductions::Key key{
      .iteration = iteration, .node = static_cast<int>(state.plan.nodes.size()), .point = Reductions::Key::kMetrics};
  Contribution mine = own_contribution(iteration);
  if (state.world.rank > 0 && tell) state.reductions.give(key, tell());
  state.in_progress.enter();
  if (!state.roll_call) return add_own(key, std::move(mine), {});
  state.roll_call->when_told(iteration, /*is_last=*/true,
                             [this, key, mine = std::move(mine)](const RollCall::Told& told) { add_own(key, mine, told); });
}

void Driver::Impl::add_own(const Reductions::Key& key, Contribution mine, const RollCall::Told& told) {
  add_contribution(mine, told.own);
  const auto report = [this, key, texts = told.texts](const Contribution& of_all) {
    try {
      if (hear && !state.is_abandoned(key.iteration)) std::ranges::for_each(texts, hear);
      report_own(key, of_all);
    } catch (...) {
      state.failure.capture("the report of iteration " + std::to_string(key.iteration));
    }
    state.in_progress.leave();
  };
  state.reductions.combine(key, std::move(mine), report);
}

void Driver::Impl::report_own(const Reductions::Key& key, const Contribution& of_all) {
  if (state.is_abandoned(key.iteration)) return;
  if (hear) std::ranges::for_each(state.reductions.take_given(key), hear);
  state.log.node_ended(key.iteration, static_cast<size_t>(key.node), metrics::row_over_ranks(of_all, state.world.size));
}

// Before the metrics of the nodes comes which line it is, after them what the run as a whole has.
void Driver::Impl::close_iteration(IterationReport& report) {
  if (sampling) return;
  const Plan& plan = state.plan;
  const PlanPath& main = plan.main_path();
  const int64_t version = main.version_for(report.iteration);
  const double actions = report.metric(metrics::action_tokens(plan)), seconds = report.metric(metrics::kIterationSeconds);
  MetricRow& row = report.metrics;
  const auto of_run = std::ranges::find(row, std::string(metrics::kRolloutSeconds), &MetricRow::value_type::first);
  MetricRow more;
  for (const PlanPath& path : plan.paths) {
    if (const auto share = metrics::dropped_by_length(plan, path, report))
      more.emplace_back(metrics::dropped_by_length_name(plan, path), *share);
  }
  if (seconds > 0 && !std::isnan(actions)) more.emplace_back(metrics::action_tokens_per_second(plan), actions / seconds);
  row.insert(of_run, more.begin(), more.end());
  const MetricRow which{{"iteration", report.iteration},
                        {"policy_version", version},
                        {"policy_lag", main.follows_versions ? report.iteration - version : 0}};
  row.insert(row.begin(), which.begin(), which.end());
  if (stop_rule) show_iteration(*stop_rule, plan, report.iteration, report.metric(stop_rule->metric()));
  end_if_decided();
}

// Iterations that may have begun by now are finished, so that it does not depend on timing which ones there are.
void Driver::Impl::end_if_decided() {
  if (!stop_rule || !stop_rule->decided_by()) return;
  const int64_t last = *stop_rule->decided_by() + state.plan.schedule.policy_lag;
  state.iterations = std::min(state.iterations.load(), std::max(begun, last + 1));
}

}  // namespace sluice::engine
