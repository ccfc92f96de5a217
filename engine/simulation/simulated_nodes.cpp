#include "engine/simulation/simulated_nodes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/numbers/random.h"
#include "engine/schedule/stages/sample_credit.h"
#include "engine/schedule/state/absent_nodes.h"

namespace sluice::engine {
namespace {

constexpr uint32_t kOfGroup = std::numeric_limits<uint32_t>::max();  // instead of the index of a sample
constexpr uint64_t kLengths = 0x6c656e67746873;                      // sets these streams apart from those of the real run
constexpr int64_t kRoom = 16;                                        // tokens of credit that a sample asks for at once
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

/// How long prompts and responses are.
class LengthDraws {
 public:
  LengthDraws(const Plan& plan, const PlanPath& path, const Costs& costs)
      : costs_(costs),
        seed_((static_cast<uint64_t>(plan.pipeline.seed) ^ kLengths) + static_cast<uint64_t>(&path - plan.paths.data())),
        bounds_(plan, path) {}

  int64_t prompt(int64_t iteration, int64_t group) const {
    return std::clamp<int64_t>(costs_.lengths_of(iteration).prompt.at(share(iteration, group, kOfGroup)), 1, bounds_.prompt());
  }

  int64_t response(int64_t iteration, int64_t group, int64_t sample, int64_t prompt) const {
    const double u = share(iteration, group, static_cast<uint32_t>(sample));
    return std::min(costs_.lengths_of(iteration).response.at(u), bounds_.response(prompt));
  }

  const SampleBounds& bounds() const { return bounds_; }

 private:
  double share(int64_t iteration, int64_t group, uint32_t sample) const {
    return RandomStream(seed_, static_cast<uint64_t>(iteration), static_cast<uint32_t>(group), sample).uniform();
  }

  const Costs& costs_;
  const uint64_t seed_;
  const SampleBounds bounds_;
};

void write_zeros(Group& group, const ColumnSpec& spec) {
  switch (spec.dtype) {
    case DType::kFloat32:
      group.write(Column<float>{spec.name.c_str(), spec.extent});
      break;
    case DType::kInt64:
      group.write(Column<int64_t>{spec.name.c_str(), spec.extent});
      break;
    case DType::kUint8:
      group.write(Column<uint8_t>{spec.name.c_str(), spec.extent});
      break;
    case DType::kString:
      group.write(Column<std::string>{spec.name.c_str(), spec.extent});
      break;
  }
}

std::vector<ColumnSpec> written_by(const Plan& plan, const PlanNode& node) {
  std::vector<ColumnSpec> columns;
  for (const int column : node.writes) columns.push_back(plan.columns[static_cast<size_t>(column)].spec);
  return columns;
}

class SimulatedSource final : public Source {
 public:
  SimulatedSource(const Plan& plan, const PlanPath& path, const Costs& costs, World world)
      : world_(world),
        draws_(plan, path, costs),
        makes_samples_(!path.rollout),
        samples_(plan.maker_of(path).needs.samples_per_group),
        columns_(written_by(plan, plan.nodes[static_cast<size_t>(path.source)])) {}

  bool next_group(Group& group) override {
    if (world_.size > 1 && !world_.has_slot(group.slot)) return true;  // of another rank: nobody looks at it here
    ++taken_;
    if (makes_samples_) {
      const int64_t prompt = draws_.prompt(group.iteration, group.index);
      for (int64_t sample = 0; sample < samples_; ++sample) {
        const int64_t response = draws_.response(group.iteration, group.index, sample, prompt);
        group.layout.add_sample(prompt + response, response);
      }
    }
    group.layout.end_group();
    for (const ColumnSpec& column : columns_) write_zeros(group, column);
    return true;
  }

  /// Since the last call.
  StepWork next_step() { return {.groups = std::exchange(taken_, 0)}; }

 private:
  const World world_;
  const LengthDraws draws_;
  const bool makes_samples_;
  const int64_t samples_;
  const std::vector<ColumnSpec> columns_;
  int64_t taken_ = 0;
};

/// Tokens of samples that were guessed and are right, on average so many a step: what is over counts for the next one.
class RightGuesses {
 public:
  explicit RightGuesses(Guesses guesses) : guesses_(guesses) {}

  bool made(int64_t decoding, int64_t prompt_tokens) const {
    if (guesses_.drafted_per_step == 0 || decoding == 0) return false;
    return guesses_.samples == 0 || (decoding <= guesses_.samples && prompt_tokens == 0);
  }

  double drafted_per_step() const { return guesses_.drafted_per_step; }

  /// Of a sample in a step, at most `most`.
  int64_t next(int64_t most) {
    over_ += guesses_.kept_per_step;
    const int64_t right = std::min(static_cast<int64_t>(over_), most);
    over_ -= static_cast<double>(right);
    return right;
  }

 private:
  const Guesses guesses_;
  double over_ = 0;
};

Guesses guesses_of(const Plan& plan, const PlanPath& path, const Costs& costs) {
  const auto found = costs.guesses.find(plan.maker_of(path).name);
  return found == costs.guesses.end() ? Guesses() : found->second;
}

/// Continuous batching: samples wait for a place, read their prompt, then get a token a step, and those that were guessed right.
class SimulatedRollout final : public Rollout {
 public:
  SimulatedRollout(const Plan& plan, const PlanPath& path, const Costs& costs)
      : draws_(plan, path, costs),
        samples_(plan.maker_of(path).needs.samples_per_group),
        side_samples_(plan.maker_of(path).needs.side_samples),
        most_running_(plan.maker_of(path).needs.running_samples > 0 ? plan.maker_of(path).needs.running_samples : kUnlimited),
        step_tokens_(plan.maker_of(path).needs.step_tokens > 0 ? plan.maker_of(path).needs.step_tokens : kUnlimited),
        on_demand_(plan.takes_on_demand(plan.maker_of(path))),
        guesses_(guesses_of(plan, path, costs)),
        columns_(written_by(plan, plan.maker_of(path))),
        credit_(kRoom, plan.has_roles() ? GroupOrder::kAny : GroupOrder::kOldestFirst) {}

  int64_t worst_tokens(const Group& group) const override {
    const int64_t prompt = draws_.prompt(group.iteration, group.index);
    return (samples_ + side_samples_) * (prompt + draws_.bounds().response(prompt));
  }

  int64_t least_tokens(const Group& group) const override {
    const int64_t prompt = draws_.prompt(group.iteration, group.index);
    return (samples_ + side_samples_) * credit_.least(prompt, prompt + draws_.bounds().response(prompt));
  }

  void start(Group group) override {
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

  /// Decides what the step does; step() then does it.
  StepWork next_step() {
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

  void step(Sink& sink) override {
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

  bool idle() const override { return groups_.empty(); }
  bool blocked() const override { return on_demand_ && credit_.blocked(); }

 private:
  using Key = SampleCredit::Key;

  struct Sample {
    Key key;
    int64_t response = 0;
    int64_t prompt_left = 0;
    int64_t response_left = 0;
    int64_t reads = 0;    // in the step at hand
    int64_t samples = 0;  // likewise
    bool travels = true;  // false: made beside the group
  };
  struct Running {
    int64_t prompt = 0;
    std::vector<int64_t> responses;
    int64_t unfinished = 0;
    Group group;
  };
  using Groups = std::map<int64_t, Running>;  // by index

  void guess(int64_t decoding, StepWork& work) {
    for (Sample& sample : running_) {
      if (sample.prompt_left > 0) continue;
      const int64_t right = guesses_.next(sample.response_left - 1);
      sample.samples += right;
      work.sampled_tokens += right, work.kept_drafts += right;
    }
    work.draft_passes = guesses_.drafted_per_step();
    work.drafted_tokens = work.draft_passes * static_cast<double>(decoding);
  }

  void end_sample(const Sample& sample, Sink& sink) {
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
  void settle(Sink& sink) {
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

  void finish(Groups::iterator found, Sink& sink) {
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

  const LengthDraws draws_;
  const int64_t samples_;       // of a group
  const int64_t side_samples_;  // beside them
  const int64_t most_running_;
  const int64_t step_tokens_;
  const bool on_demand_;
  RightGuesses guesses_;
  const std::vector<ColumnSpec> columns_;
  SampleCredit credit_;
  std::map<Key, Sample> waiting_;  // the oldest first
  std::vector<Sample> running_;
  std::map<Key, Sample> preempted_;
  Groups groups_;
  bool decided_ = false;
};

using Publish = std::function<void(const std::string& model, int64_t version)>;

class SimulatedNode final : public Node {
 public:
  SimulatedNode(const Plan& plan, size_t node, double kept_share, Publish publish)
      : columns_(written_by(plan, plan.nodes[node])),
        models_(plan.nodes[node].needs.models),
        publish_(std::move(publish)),
        filters_(plan.nodes[node].needs.drops_groups),
        kept_share_(kept_share),
        seed_(static_cast<uint64_t>(plan.pipeline.seed) ^ (kLengths + 1 + node)) {}

  void process(MicroBatch& batch) override {
    for (const ColumnSpec& column : columns_) batch.write(column);
    if (!filters_) return;
    for (size_t group = 0; group < batch.groups(); ++group) {
      RandomStream verdict(seed_, static_cast<uint64_t>(batch.iteration()), static_cast<uint32_t>(batch.group_index(group)));
      if (verdict.uniform() >= kept_share_) batch.drop_group(group);
    }
  }

  // Each column is written once.
  void process_iteration(int64_t step, std::span<MicroBatch> batches) override {
    if (step == 0) Node::process_iteration(step, batches);
  }

  void end_iteration(const Iteration& iteration) override {
    for (const ModelNeed& need : models_) {
      if (publish_ && need.use == ModelUse::kPublishes) publish_(need.model, iteration.index + 1);
    }
  }

 private:
  const std::vector<ColumnSpec> columns_;
  const std::vector<ModelNeed> models_;
  const Publish publish_;
  const bool filters_;
  const double kept_share_;
  const uint64_t seed_;
};

}  // namespace

// The least credit of a sample is a prompt of one token and the longest response, where the response has a bound of its own.
SampleBounds::SampleBounds(const Plan& plan, const PlanPath& path)
    : sample_(plan.maker_of(path).needs.worst_sample_tokens), response_(plan.maker_of(path).needs.least_sample_tokens - 1) {}

int64_t SampleBounds::prompt() const { return std::max<int64_t>(1, sample_ - std::max<int64_t>(1, response_)); }

int64_t SampleBounds::response(int64_t prompt) const {
  return response_ > 0 ? response_ : std::max<int64_t>(0, sample_ - prompt);
}

SimulatedWorkload make_simulated_workload(const Plan& plan, const Costs& costs, World world, Publish publish) {
  SimulatedWorkload simulated;
  simulated.next_step.resize(plan.paths.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    Workload::Part& part = simulated.workload.parts.emplace_back();
    part.metrics = std::make_unique<MetricsRecorder>(plan.nodes[i].needs.metrics, plan.nodes[i].metrics_prefix);
    part.totals = plan.owners() > 1 ? std::make_unique<Totals>(plan.nodes[i].needs.totals) : std::make_unique<Totals>();
    const PlanPath& path = plan.path_of(static_cast<int>(i));
    std::function<StepWork()>& next_step = simulated.next_step[static_cast<size_t>(plan.nodes[i].path)];
    if (!plan.has(world.rank, static_cast<int>(i))) {
      part.node = absent_node(plan, static_cast<int>(i));
      if (plan.nodes[i].type->kind == NodeKind::kRollout) next_step = [] { return StepWork(); };
      continue;
    }
    switch (plan.nodes[i].type->kind) {
      case NodeKind::kSource: {
        auto source = std::make_unique<SimulatedSource>(plan, path, costs, world);
        if (!path.rollout) next_step = [source = source.get()] { return source->next_step(); };
        part.node = std::move(source);
        break;
      }
      case NodeKind::kRollout: {
        auto rollout = std::make_unique<SimulatedRollout>(plan, path, costs);
        next_step = [rollout = rollout.get()] { return rollout->next_step(); };
        part.node = std::move(rollout);
        break;
      }
      case NodeKind::kOrdinary: {
        const auto known = costs.nodes.find(plan.nodes[i].name);
        part.node = std::make_unique<SimulatedNode>(plan, i, known == costs.nodes.end() ? 1 : known->second.kept_share, publish);
        break;
      }
    }
  }
  return simulated;
}

}  // namespace sluice::engine
