#include "engine/schedule/rollout/worker_progress.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

bool uses(const PlanNode& node, const std::string& model, ModelUse use) {
  return std::ranges::any_of(node.needs.models, [&](const ModelNeed& need) { return need.model == model && need.use == use; });
}

}  // namespace

WorkerProgress::WorkerProgress(RunState& state, Parts parts) : state_(state), parts_(std::move(parts)) {
  for (const PlanModel& model : state_.plan.models) {
    if (state_.received.contains(model.name)) note_received(model);
  }
}

void WorkerProgress::note_received(const PlanModel& model) {
  Received received{.model = model.name, .versions = model.usage.versions, .granted = parts_.newest_version};
  for (const PlanNode& node : state_.plan.nodes) {
    if (uses(node, model.name, ModelUse::kPublishes)) received.trained_on = node.path;
  }
  for (const int path : parts_.paths) {
    const int maker = state_.plan.paths[static_cast<size_t>(path)].maker();
    if (uses(state_.plan.nodes[static_cast<size_t>(maker)], model.name, ModelUse::kSamples)) received.sampled_on.push_back(path);
  }
  received_.push_back(std::move(received));
}

// It is trained on iterations that are there, and nobody samples from the one whose memory it takes.
bool WorkerProgress::may_come(const Received& received, int64_t version) const {
  if (version > parts_.owners.floor(received.trained_on)) return false;
  return std::ranges::all_of(received.sampled_on, [&](int path) {
    if (parts_.owners.is_over(path)) return true;
    const int64_t wanted = state_.plan.paths[static_cast<size_t>(path)].version_for(parts_.owners.floor(path));
    return wanted >= received.versions.oldest_readable(version);
  });
}

void WorkerProgress::let_versions_come() {
  const std::lock_guard lock(mutex_);
  if (state_.stopping()) return;
  for (Received& received : received_) {
    while (may_come(received, received.granted + 1)) receive(received);
  }
}

void WorkerProgress::receive(Received& received) {
  const int64_t version = ++received.granted;
  const auto arrived = [this, model = received.model, version](const ReceivedVersion& of) { arrive(model, version, of); };
  state_.received.at(received.model)->receive_version(version, state_.coming->expect(version, arrived));
}

void WorkerProgress::arrive(const std::string& model, int64_t version, const ReceivedVersion& received) {
  if (!received.failure) {
    state_.arrivals.opened(received.published, state_.clock.now_ns());
    return state_.gates.at(model).publish(version);
  }
  try {
    std::rethrow_exception(received.failure);
  } catch (...) {
    state_.failure.capture("taking version " + std::to_string(version) + " of model '" + model + "' on rank " +
                           std::to_string(state_.world.rank));
  }
}

void WorkerProgress::ended(int path, int64_t iteration, Contribution recorded) {
  const std::lock_guard lock(mutex_);
  Ended& ended = ended_[iteration];
  if (!recorded.empty()) ended.of_rollouts[state_.plan.paths[static_cast<size_t>(path)].maker()] = std::move(recorded);
  if (++ended.paths < parts_.paths.size()) return;
  const Ended all = std::move(ended_.extract(iteration).mapped());
  parts_.roll_call.tell(iteration, parts_.measure(iteration), all.of_rollouts, parts_.tell ? parts_.tell() : std::string());
  state_.log.node_ended(iteration, 0, {});
}

}  // namespace sluice::engine
