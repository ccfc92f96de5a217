#include "engine/schedule/rollout/sampling_rank.h"

#include <utility>
#include <vector>

#include "engine/schedule/help/askers.h"

namespace sluice::engine {
namespace {

std::vector<int> paths_with_rollout(const Plan& plan) {
  std::vector<int> paths;
  for (size_t path = 0; path < plan.paths.size(); ++path) {
    if (plan.paths[path].rollout) paths.push_back(static_cast<int>(path));
  }
  return paths;
}

}  // namespace

SamplingRank::SamplingRank(RunState& state, Parts parts)
    : state_(state),
      changed_(std::move(parts.changed)),
      begun_(parts.begun),
      owners_(state.plan.paths.size(), owners_to_ask(state.world, asked_by_samplers(state.plan)),
              parts.first_version ? 0 : parts.begun),
      progress_(state, {.roll_call = parts.roll_call,
                        .owners = owners_,
                        .paths = paths_with_rollout(state.plan),
                        .newest_version = parts.first_version ? *parts.first_version - 1 : parts.begun,
                        .measure = std::move(parts.measure),
                        .tell = std::move(parts.tell)}) {
  if (!parts.first_version) return;
  for (const auto& [name, model] : state.received) model->begin_with_version(*parts.first_version);
}

std::unique_ptr<PathHead> SamplingRank::worker(int path, Workload::Part rollout, GroupAsker& asker,
                                               std::function<void()> finished) {
  const int node = *state_.plan.paths[static_cast<size_t>(path)].rollout;
  return std::make_unique<RolloutWorker>(
      state_,
      RolloutWorker::Parts{.path = path,
                           .rollout = std::make_unique<StageHost>(state_, node, std::move(rollout)),
                           .begun = begun_,
                           .may_be_lost = state_.plan.expendable().has(state_.world.rank),
                           .asker = asker,
                           .owners = owners_,
                           .progress = progress_},
      std::move(finished));
}

// A worker may end by these news at once. The run goes on until the versions are awaited that they let come: others wait for this
// rank to have them.
void SamplingRank::hear(int path, int owner, const OwnerNews& news) {
  const WorkInProgress::Hold hold(state_.in_progress);
  if (news.ends_early) state_.ends_on_all_ranks = true;
  owners_.take(path, owner, news);
  progress_.let_versions_come();
}

void SamplingRank::end_behind(int64_t last) {
  if (last + 1 < state_.iterations) state_.ends_on_all_ranks = true;
  state_.coming->drop_behind(last);
  changed_();
}

}  // namespace sluice::engine
