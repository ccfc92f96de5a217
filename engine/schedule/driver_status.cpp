#include <algorithm>
#include <string>
#include <utility>

#include "engine/memory/memory_bound.h"
#include "engine/schedule/driver_impl.h"

namespace sluice::engine {

std::string Driver::Impl::waits_for(size_t node) const {
  const PlanNode& plan = state.plan.nodes[node];
  const auto& head = heads[static_cast<size_t>(plan.path)];
  if (plan.type->kind != NodeKind::kOrdinary) {
    const bool takes_in = static_cast<int>(node) == state.plan.path_of(static_cast<int>(node)).maker();
    return takes_in && head ? head->waits_for() : std::string();
  }
  if (!graph) return {};
  const int index = static_cast<int>(node);
  if (std::string missing = graph->waits_for(index); !missing.empty()) return missing;
  if (const int64_t held = state.traffic.held(index); held > 0)
    return "the end of iteration " + std::to_string(head->iteration());
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
  const std::string outside = workload.outside->waits_for(plan.name);
  const bool at_work = state.activity.current(executor_index(state.plan, plan.executor)).node == index;
  return {.name = plan.name,
          .executor = plan.executor,
          .micro_batches = done.micro_batches,
          .tokens = done.tokens,
          .busy_seconds = state.activity.busy_seconds_of_node(index),
          .queued = state.traffic.queued(index),
          .held = state.traffic.held(index),
          .waits_for = at_work || !outside.empty() ? outside : waits_for(node)};
}

// Of the nodes on that executor, or of all.
Driver::Idle Driver::Impl::idle_reason(const std::string* executor) const {
  const Plan& plan = state.plan;
  const auto concerns = [&](size_t node) { return executor == nullptr || plan.nodes[node].executor == *executor; };
  Idle otherwise = Idle::kNoInput;
  for (size_t path = 0; path < plan.paths.size(); ++path) {
    if (!heads[path] || !concerns(static_cast<size_t>(plan.paths[path].source))) continue;
    switch (heads[path]->waiting()) {
      case PathHead::Wait::kCredit:
        return Idle::kNoCredit;
      case PathHead::Wait::kVersion:
      case PathHead::Wait::kReports:
        return Idle::kNoWeights;
      case PathHead::Wait::kOtherRank:
        otherwise = Idle::kNoGroups;
        break;
      case PathHead::Wait::kNothing:
      case PathHead::Wait::kVerdicts:
        break;
    }
  }
  if (!graph) return otherwise;
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
  Holdings most{.column_bytes = std::max(impl.most_column_bytes.load(), impl.state.columns.live()), .pools = {}};
  for (const auto& head : impl.heads) {
    if (!head) continue;
    const Rollout::PoolBytes pool = head->pool_bytes();
    Rollout::PoolBytes& there =
        most.pools[place_of_pool(impl.state.plan, impl.state.plan.paths[static_cast<size_t>(head->path())])];
    there.held += pool.held;
    there.used += pool.used;
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
                   .iterations_before = impl.begun,
                   .tokens_in_flight = impl.state.tokens_in_flight(),
                   .tokens_in_flight_peak = std::max(impl.most_in_flight.load(), impl.state.tokens_in_flight()),
                   .budget = plan.token_capacity(),
                   .column_bytes = impl.state.columns.live(),
                   .column_bytes_peak = std::max(impl.most_column_bytes.load(), impl.state.columns.live())};
  if (impl.heads.empty()) return status;
  const auto at_main = impl.heads.begin() + impl.state.main_path;
  const auto shown = *at_main ? at_main : std::ranges::find_if(impl.heads, [](const auto& head) { return head != nullptr; });
  status.sampling_iteration = (*shown)->iteration();
  status.running_samples = (*shown)->running_samples();
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
