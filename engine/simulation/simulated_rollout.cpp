#include "engine/simulation/simulated_rollout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "engine/simulation/written_columns.h"

namespace sluice::engine {
namespace {

constexpr int64_t kRoom = 16;  // tokens of credit that a sample asks for at once
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

Guesses guesses_of(const Plan& plan, const PlanPath& path, const Costs& costs) {
  const auto found = costs.guesses.find(plan.maker_of(path).name);
  return found == costs.guesses.end() ? Guesses() : found->second;
}

}  // namespace

SimulatedRollout::SimulatedRollout(const Plan& plan, const PlanPath& path, const Costs& costs)
    : draws_(plan, path, costs),
      samples_(plan.maker_of(path).needs.samples_per_group),
      side_samples_(plan.maker_of(path).needs.side_samples),
      most_running_(plan.maker_of(path).needs.running_samples > 0 ? plan.maker_of(path).needs.running_samples : kUnlimited),
      step_tokens_(plan.maker_of(path).needs.step_tokens > 0 ? plan.maker_of(path).needs.step_tokens : kUnlimited),
      on_demand_(plan.takes_on_demand(plan.maker_of(path))),
      guesses_(guesses_of(plan, path, costs)),
      columns_(written_by(plan, plan.maker_of(path))),
      credit_(kRoom, plan.has_roles() ? GroupOrder::kAny : GroupOrder::kOldestFirst) {}

int64_t SimulatedRollout::worst_tokens(const Group& group) const {
  const int64_t prompt = draws_.prompt(group.iteration, group.index);
  return (samples_ + side_samples_) * (prompt + draws_.bounds().response(prompt));
}

int64_t SimulatedRollout::least_tokens(const Group& group) const {
  const int64_t prompt = draws_.prompt(group.iteration, group.index);
  return (samples_ + side_samples_) * credit_.least(prompt, prompt + draws_.bounds().response(prompt));
}

void SimulatedRollout::start(Group group) {
  const int64_t index = group.index;
  Running running{
      .prompt = draws_.prompt(group.iteration, index), .responses = {}, .unfinished = samples_ + side_samples_, .group = {}};
  for (int64_t sample = 0; sample < samples_ + side_samples_; ++sample) {
    const int64_t response = std::max<int64_t>(1, draws_.response(group.iteration, index, sample, running.prompt));
    const bool travels = sample < samples_;
    if (travels) running.responses.push_back(response);
    const Key key{index, sample};
    waiting_[key] = {
        .key = key, .response = response, .prompt_left = running.prompt, .response_left = response, .travels = travels};
    if (on_demand_) credit_.start(key, running.prompt, running.prompt + draws_.bounds().response(running.prompt));
  }
  running.group = std::move(group);
  groups_.emplace(index, std::move(running));
}

StepWork SimulatedRollout::next_step() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < most_running_) {
    running_.push_back(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
  StepWork work;
  int64_t left = step_tokens_;
  for (Sample& sample : running_) {
    sample.reads = 0;
    sample.samples = sample.prompt_left == 0 ? 1 : 0;
    left -= sample.samples;
  }
  const int64_t decoding = step_tokens_ - left;
  for (Sample& sample : running_) {
    if (sample.prompt_left > 0) {
      sample.reads = std::clamp<int64_t>(left, 0, sample.prompt_left);
      left -= sample.reads;
      // The last token of the prompt gives the first of the response.
      sample.samples = sample.reads == sample.prompt_left ? 1 : 0;
    }
    work.prompt_tokens += sample.reads;
    work.sampled_tokens += sample.samples;
  }
  if (guesses_.made(decoding, work.prompt_tokens)) guess(decoding, work);
  decided_ = true;
  return work;
}

void SimulatedRollout::step(Sink& sink) {
  if (!decided_) next_step();
  decided_ = false;
  int64_t prompt_tokens = 0, sampled_tokens = 0;
  for (Sample& sample : running_) {
    prompt_tokens += sample.reads, sampled_tokens += sample.samples;
    sample.prompt_left -= sample.reads;
    sample.response_left -= sample.samples;
    if (sample.response_left == 0) end_sample(sample, sink);
  }
  std::erase_if(running_, [](const Sample& sample) { return sample.response_left == 0; });
  sink.worked(prompt_tokens, sampled_tokens);
  if (on_demand_) settle(sink);
  for (auto next = groups_.begin(); on_demand_ && next != groups_.end();)
    if (const auto group = next++; credit_.may_finish(group->first)) finish(group, sink);
}

void SimulatedRollout::guess(int64_t decoding, StepWork& work) {
  for (Sample& sample : running_) {
    if (sample.prompt_left > 0) continue;
    const int64_t right = guesses_.next(sample.response_left - 1);
    sample.samples += right;
    work.sampled_tokens += right, work.kept_drafts += right;
  }
  work.draft_passes = guesses_.drafted_per_step();
  work.drafted_tokens = work.draft_passes * static_cast<double>(decoding);
}

void SimulatedRollout::end_sample(const Sample& sample, Sink& sink) {
  const auto found = groups_.find(sample.key.group);
  SLUICE_CHECK(found != groups_.end(), "a simulated sample of no group");
  Running& running = found->second;
  --running.unfinished;
  if (on_demand_) return credit_.end(sample.key, sample.travels ? running.prompt + sample.response : 0, sink);
  const int64_t worst = draws_.bounds().response(running.prompt);
  const int64_t spared = sample.travels ? worst - sample.response : running.prompt + worst;
  if (spared > 0) sink.return_credit(sample.key.group, spared);
  if (running.unfinished == 0) finish(found, sink);
}

// What was preempted reads all of its text again.
void SimulatedRollout::settle(Sink& sink) {
  for (const Sample& sample : running_) {
    const int64_t text = groups_.at(sample.key.group).prompt + sample.response - sample.response_left;
    credit_.set_need(sample.key, text + 1);
  }
  const SampleCredit::Changes changes = credit_.settle(sink);
  for (const Key& key : changes.preempted) {
    const auto running = std::ranges::find(running_, key, &Sample::key);
    preempted_[key] = running != running_.end() ? *running : waiting_.at(key);
    if (running != running_.end()) running_.erase(running);
    waiting_.erase(key);
  }
  for (const Key& key : changes.restarted) {
    Sample sample = preempted_.extract(key).mapped();
    sample.prompt_left = groups_.at(key.group).prompt + sample.response - sample.response_left;
    waiting_[key] = sample;
  }
}

void SimulatedRollout::finish(Groups::iterator found, Sink& sink) {
  Running& running = found->second;
  Group group = std::move(running.group);
  group.layout = {};
  for (const int64_t response : running.responses) group.layout.add_sample(running.prompt + response, response);
  group.layout.end_group();
  for (const ColumnSpec& column : columns_) write_zeros(group, column);
  credit_.forget(found->first);
  groups_.erase(found);
  sink.finish(std::move(group));
}

}  // namespace sluice::engine
