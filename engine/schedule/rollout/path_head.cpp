#include "engine/schedule/rollout/path_head.h"

#include <algorithm>
#include <utility>

#include "engine/observe/engine_metrics.h"
#include "engine/schedule/rollout/group_columns.h"

namespace sluice::engine {
namespace {

Rollout* rollout_of(StageHost& maker) { return maker.plan().type->kind == NodeKind::kRollout ? &maker.as<Rollout>() : nullptr; }

}  // namespace

PathHead::PathHead(RunState& state, int path, StageHost& maker, const AdmissionRules& rules, int64_t begun,
                   std::function<void()> finished)
    : state_(state),
      index_(path),
      path_(state.paths[static_cast<size_t>(path)]),
      maker_(maker),
      rollout_(rollout_of(maker)),
      admission_(*path_.budget, rules),
      seen_iteration_(begun - 1),
      finished_(std::move(finished)) {
  for (const ModelNeed& need : maker_.plan().needs.models) {
    const auto gate = state.gates.find(need.model);
    if (need.use == ModelUse::kSamples && gate != state.gates.end()) gates_.push_back(&gate->second);
  }
}

bool PathHead::has_version(int64_t version) const {
  return std::ranges::all_of(gates_, [&](const VersionGate* gate) { return gate->has(version); });
}

void PathHead::begin_maker(const Iteration& iteration) {
  admission_.begin_iteration();
  tail_.begin_iteration();
  maker_.begin(iteration);
}

void PathHead::record_pool() { maker_.metrics().maximum(metrics::kKvBytesMax, static_cast<double>(rollout_->pool_bytes().held)); }

std::vector<RolloutSink::Finished> PathHead::step_rollout(MetricsRecorder* metrics) {
  RolloutSink sink(admission_, slice_, metrics);
  admission_.begin_step();
  rollout_->step(sink);
  return sink.take_finished();
}

Credit PathHead::settle(Group& group) {
  for_group(group.index, [&] {
    check_columns(state_, group, maker_.index());
    admission_.settle(group);
  });
  return admission_.hand_over(group.index);
}

WorkPlace PathHead::place_of_maker(int64_t iteration) const {
  const AdmissionStage::Groups groups = admission_.admitted();
  WorkPlace place{.node = maker_.plan().name, .iteration = std::max<int64_t>(0, iteration)};
  place.first_group = groups.first;
  place.last_group = groups.last;
  return place;
}

std::string PathHead::waits_for_version(int64_t iteration) const {
  return "version " + std::to_string(path_.plan.version_for(iteration)) + " of the weights to be published";
}

void PathHead::begin_step() {
  state_.activity.begin(maker_.executor(), maker_.index());
  slice_ = {};
  step_began_ns_ = state_.clock.now_ns();
  guarded(&PathHead::take_in);
}

void PathHead::end_step() {
  guarded(&PathHead::bring_out);
  slice_.iteration = iteration_of_step();
  if (rollout_ != nullptr) tail_.step(slice_.tokens, all_groups_are_in(), state_.clock.now_ns() - step_began_ns_);
  tell_of_step();
  if (rollout_ != nullptr) {
    const Rollout::PoolBytes pool = rollout_->pool_bytes();
    seen_pool_held_ = pool.held;
    seen_pool_used_ = pool.used;
  }
  show();
}

void PathHead::guarded(void (PathHead::*half)()) {
  if (finished_run_) return;
  if (state_.stopping()) return finish_run();
  try {
    (this->*half)();
  } catch (...) {
    WorkPlace where = place();
    if (named_group_ >= 0) where.first_group = where.last_group = named_group_;
    state_.failure.capture(where);
    finish_run();
  }
}

// What the step amounted to is told to the observers, and counts as progress, unless it was nothing.
void PathHead::tell_of_step() {
  const bool worked = slice_.tokens > 0 || slice_.prompt_tokens > 0 || slice_.groups > 0;
  if (!worked) return state_.activity.end_unseen(maker_.executor());
  state_.activity.end(maker_.executor(), std::move(slice_));
  state_.steps.fetch_add(1, std::memory_order_relaxed);
}

void PathHead::finish_run() {
  if (std::exchange(finished_run_, true)) return;
  leave_run();
  finished_();
}

}  // namespace sluice::engine
