#include "engine/schedule/stages/node_runner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/contract/columns/contract_breach.h"
#include "engine/contract/text_bound.h"

namespace sluice::engine {

NodeRunner::NodeRunner(RunState& state, int node, Workload::Part part, const Workload::Models& models)
    : state_(state),
      host_(state, node, std::move(part)),
      node_(host_.as<Node>()),
      plan_(host_.plan()),
      index_(node),
      executor_(host_.executor()),
      path_(state.path_of(plan_)),
      ranks_(state, host_, models) {
  if (plan_.needs.drops_groups) filter_.emplace(state, host_);
  for (const std::string& model : host_.published_models()) wait_for_samplers(model);
  for (const ModelNeed& need : plan_.needs.models) {
    if (need.use == ModelUse::kReads && state.trained.contains(need.model))
      prerequisites_.push_back({&state.trained.at(need.model), 0});
    if (need.use != ModelUse::kUpdates) continue;
    if (const auto gate = state.gates.find(need.model); gate != state.gates.end())
      prerequisites_.push_back({&gate->second.published(), 0});
  }
  // One order for all nodes, since a milestone's actions ask the next one under its lock; and each once: several keys may name
  // one model.
  std::ranges::sort(prerequisites_);
  prerequisites_.erase(std::unique(prerequisites_.begin(), prerequisites_.end()), prerequisites_.end());
}

// Publishing a version takes the memory of the oldest. On the publisher's own path nothing is sampled from that any more: the
// trainer has had all of it.
void NodeRunner::wait_for_samplers(const std::string& model) {
  const auto is_model = [&](const auto& other) { return other.name == model; };
  const ModelVersions& versions = std::ranges::find_if(state_.plan.models, is_model)->usage.versions;
  const int64_t oldest_readable = versions.oldest_readable(/*newest=*/1);  // of iteration 0, which publishes version 1
  for (PathState& path : state_.paths) {
    const auto& needs = state_.plan.nodes[static_cast<size_t>(path.plan.maker())].needs.models;
    const auto samples = [&](const ModelNeed& need) { return need.use == ModelUse::kSamples && need.model == model; };
    if (&path != &path_ && std::ranges::any_of(needs, samples))
      prerequisites_.push_back({&path.version_wanted, oldest_readable, /*at_the_end=*/true});
  }
}

// Inline, since it is called for each packet and node: a call of its own would cost 3 % of what the engine takes.
inline bool NodeRunner::handle(Packet& packet, const PassOn& pass_on, const std::function<void()>& go_on) {
  if (!ending_) expect(packet);
  if (packet.batch == nullptr && !path_.plan.is_due(packet.iteration.index, state_.plan.pipeline.iterations)) {
    pass_over(packet, pass_on);
    return true;
  }
  host_.begin(packet.iteration);
  if (packet.batch == nullptr) return end_iteration(packet, pass_on, go_on);
  if (is_barrier())
    hold(packet);
  else if (packet.batch->layout.groups() == 0)
    skip_empty(packet, pass_on);
  else
    process_one(packet, pass_on);
  return true;
}

bool NodeRunner::run(Packet& packet, const PassOn& pass_on, const std::function<void()>& go_on) {
  if (is_dropped(packet)) {
    state_.activity.end_unseen(executor_);
    return true;
  }
  state_.activity.begin_packet(executor_, packet.iteration.index, packet.batch == nullptr ? -1 : packet.batch->id);
  try {
    return handle(packet, pass_on, go_on);
  } catch (const WorkDropped&) {
    fail_unless_dropped(packet);
  } catch (...) {
    fail(packet);
  }
  return true;
}

// In a catch block.
void NodeRunner::fail(const Packet& packet) {
  state_.failure.capture(place(packet));
  state_.activity.end_unseen(executor_);
  state_.traffic.packet_done(index_);
}

// Likewise.
void NodeRunner::fail_unless_dropped(const Packet& packet) {
  if (!is_dropped(packet)) return fail(packet);
  state_.activity.end_unseen(executor_);
}

// A packet that was lost would go unnoticed: the iteration would end without it.
void NodeRunner::expect(const Packet& packet) {
  SLUICE_CHECK(packet.sequence == next_, "executor '" + plan_.executor + "' brought packet " + std::to_string(packet.sequence) +
                                             " where " + std::to_string(next_) + " was due");
  ++next_;
}

// An empty one too, so that none overtakes another.
void NodeRunner::hold(Packet& packet) {
  held_.push_back(std::move(packet));
  state_.traffic.held(index_, static_cast<int64_t>(held_.size()));
  state_.activity.end_unseen(executor_);
  state_.traffic.packet_done(index_);
}

void NodeRunner::process_one(Packet& packet, const PassOn& pass_on) {
  MicroBatch batch = view(packet);
  node_.process(batch);
  std::shared_ptr<BatchState> thin;
  if (filter_)
    thin = filtered(batch);
  else
    seal(batch);
  state_.activity.end(executor_, {.iteration = packet.iteration.index,
                                  .micro_batch = packet.batch->id,
                                  .tokens = static_cast<int64_t>(packet.batch->layout.tokens())});
  settle(batch);
  if (filter_) packet.batch = std::move(thin);
  state_.traffic.handed_on(index_, packet.batch.get());
  state_.traffic.packet_done(index_);
  pass_on(packet, /*last=*/true);
}

// A filter in front dropped all of it: nodes never see an empty micro-batch.
void NodeRunner::skip_empty(Packet& packet, const PassOn& pass_on) {
  state_.activity.end_unseen(executor_);
  state_.traffic.done(index_, *packet.batch);
  state_.traffic.packet_done(index_);
  if (filter_) filter_->tell_of_empty(*packet.batch);
  state_.traffic.handed_on(index_, packet.batch.get());
  pass_on(packet, /*last=*/true);
}

bool NodeRunner::end_iteration(Packet& packet, const PassOn& pass_on, const std::function<void()>& go_on) {
  if (!host_.updated_models().empty() && !state_.cutoff.enters(packet.iteration.index)) {
    state_.activity.end_unseen(executor_);
    return true;
  }
  if (!ending_) open_held();
  ending_ = true;
  if (!go_through_steps(packet.iteration, go_on)) {
    state_.activity.end(executor_, {.iteration = packet.iteration.index});
    return false;
  }
  ending_ = false;
  host_.save(packet.iteration, ranks_.saves());
  state_.activity.end(executor_, {.iteration = packet.iteration.index, .tokens = held_tokens_, .ends_iteration = true});
  state_.traffic.held(index_, 0);
  host_.announce_end(packet.iteration);
  const std::vector<Packet> held = std::exchange(held_, {});
  for (const Packet& batch : held) state_.traffic.handed_on(index_, batch.batch.get());
  state_.traffic.packet_done(index_);
  for (const Packet& batch : held) pass_on(batch, /*last=*/false);
  pass_on(packet, /*last=*/true);
  return true;
}

// After the steps of a barrier comes one more point at which totals are combined: what end_iteration() reads. What a step has
// changed of the weights is brought to all ranks after it. False: it is to be called again, and goes on there.
bool NodeRunner::go_through_steps(const Iteration& iteration, const std::function<void()>& go_on) {
  const int64_t steps = is_barrier() ? plan_.needs.steps : 0;
  ranks_.go_on_from_meeting(iteration);
  while (true) {
    const bool at_end = step_ == steps;
    if (phase_ == Phase::kAdd) {
      if (!at_end) node_.gather(step_, views_);
      phase_ = Phase::kWork;
      if (!ranks_.combine(iteration, at_end ? Reductions::Key::kEnd : step_, 2 * step_, go_on)) return false;
      ranks_.go_on_from_meeting(iteration);
    }
    if (phase_ == Phase::kWork) {
      if (at_end)
        work_at_the_end(iteration);
      else
        node_.process_iteration(step_, views_);
      phase_ = Phase::kBring;
      if (!ranks_.bring_weights(2 * step_ + 1, go_on)) return false;
      ranks_.go_on_from_meeting(iteration);
    }
    ranks_.follow();
    phase_ = Phase::kAdd;
    if (at_end) break;
    ++step_;
  }
  step_ = 0;
  return true;
}

void NodeRunner::work_at_the_end(const Iteration& iteration) {
  ranks_.take_lines(iteration);
  held_tokens_ = close_held();
  if (filter_) filter_->record();
  host_.end(iteration);
}

void NodeRunner::open_held() {
  for (const Packet& packet : held_) {
    if (packet.batch->layout.groups() == 0)
      state_.traffic.done(index_, *packet.batch);
    else
      views_.push_back(view(packet));
  }
}

// Returns the tokens of what was held.
int64_t NodeRunner::close_held() {
  int64_t tokens = 0;
  for (MicroBatch& batch : views_) {
    tokens += static_cast<int64_t>(batch.tokens());
    seal(batch);
    settle(batch);
  }
  views_.clear();
  return tokens;
}

void NodeRunner::pass_over(const Packet& packet, const PassOn& pass_on) {
  state_.activity.end_unseen(executor_);
  host_.pass_over(packet.iteration);
  state_.traffic.packet_done(index_);
  pass_on(packet, /*last=*/true);
}

const ColumnData& NodeRunner::written(const MicroBatch& batch, size_t index) const {
  const ColumnData& data = batch.written_columns()[index];
  const ColumnSpec& spec = state_.column_specs[static_cast<size_t>(plan_.writes[index])];
  if (data.empty()) throw_contract_breach("it did not write column '" + spec.name + "', which its contract promises");
  check_text_bound(*plan_.type, plan_.needs, spec, data);
  return data;
}

void NodeRunner::tell_observers(const MicroBatch& batch) const {
  if (plan_.path != state_.main_path) return;
  const BatchState& state = batch.state();
  WrittenColumns columns{
      .iteration = state.iteration, .micro_batch = state.id, .layout = state.layout, .group_indices = state.group_indices};
  for (size_t i = 0; i < plan_.writes.size(); ++i)
    columns.columns.emplace_back(&state_.column_specs[static_cast<size_t>(plan_.writes[i])], &written(batch, i));
  state_.activity.wrote(columns);
}

// Nobody changes any more what the node wrote.
void NodeRunner::seal(MicroBatch& batch) {
  if (!batch.dropped_groups().empty())
    throw_contract_breach("it drops groups, but its contract does not say that it is a filter");
  tell_observers(batch);
  for (size_t i = 0; i < plan_.writes.size(); ++i) batch.state().store(static_cast<size_t>(plan_.writes[i]), written(batch, i));
}

// What the node read has one reader less; if it was the last reader of all, the tokens' credit returns.
void NodeRunner::settle(MicroBatch& batch) {
  BatchState& state = batch.state();
  state_.traffic.done(index_, state);
  for (const int column : plan_.reads) state.release_one_reader(static_cast<size_t>(column));
  if (filter_) {
    for (const int column : state_.filter_streams.carried_by(index_)) {
      if (std::ranges::find(plan_.reads, column) == plan_.reads.end()) state.release_one_reader(static_cast<size_t>(column));
    }
  }
  if (!plan_.reads.empty() || filter_) state.release_one_token_reader();
}

// The micro-batch that leaves a filter.
std::shared_ptr<BatchState> NodeRunner::filtered(const MicroBatch& batch) {
  const BatchState& state = batch.state();
  tell_observers(batch);
  const std::vector<uint8_t> keep = filter_->choose(batch);
  auto thin = state.thinned(keep, state_.column_specs, state_.filter_streams.carried_by(index_),
                            state_.filter_streams.readers_behind(index_));
  for (size_t i = 0; i < plan_.writes.size(); ++i) {
    const auto slot = static_cast<size_t>(plan_.writes[i]);
    thin->store(slot, written(batch, i).selected(state.layout.entries_of(keep, state_.column_specs[slot].extent)));
  }
  filter_->tell(state, keep);
  return thin;
}

WorkPlace NodeRunner::place(const Packet& packet) const {
  WorkPlace place{.node = plan_.name, .iteration = packet.iteration.index};
  if (packet.batch != nullptr && !packet.batch->group_indices.empty()) {
    place.micro_batch = packet.batch->id;
    place.first_group = packet.batch->group_indices.front();
    place.last_group = packet.batch->group_indices.back();
  }
  return place;
}

}  // namespace sluice::engine
