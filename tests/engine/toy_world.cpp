#include "tests/engine/toy_world.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/numbers/random.h"
#include "engine/schedule/stages/sample_credit.h"

namespace sluice::engine::toy {
namespace {

struct SourceParams {
  int64_t groups_per_iteration = 1;
  int64_t data_groups = 0;  // the data ends after so many; 0: never
};

class ToySource final : public Source {
 public:
  static void describe(Contract<SourceParams>& c) {
    c.type("toy_source", "numbered groups");
    c.param("groups_per_iteration", &SourceParams::groups_per_iteration).at_least(1).doc("groups");
    c.param("data_groups", &SourceParams::data_groups).at_least(0).doc("groups in all");
    c.writes(kOrigin);
    c.needs([](const SourceParams& p, NodeNeeds& needs) { needs.groups_per_iteration = p.groups_per_iteration; });
  }
  explicit ToySource(const SourceParams& params) : params_(params) {}

  bool next_group(Group& group) override {
    if (params_.data_groups > 0 && made_ == params_.data_groups) return false;
    ++made_;
    group.layout.end_group();
    group.write(kOrigin)[0] =
        static_cast<int64_t>(mix(static_cast<uint64_t>(group.iteration), static_cast<uint64_t>(group.index)));
    return true;
  }

  void save(StateWriter& state) const override { state.put("made", made_); }
  void load(const StateReader& state) override { made_ = state.integer("made"); }

 private:
  SourceParams params_;
  int64_t made_ = 0;
};

// How long a sample waits before its first token. Draws do not depend on it, nor may what is trained.
enum class Pace { kEven, kLongLast, kLongFirst, kAny };

constexpr auto enum_names(Pace) {
  return std::array{std::pair{Pace::kEven, "even"}, std::pair{Pace::kLongLast, "long_last"},
                    std::pair{Pace::kLongFirst, "long_first"}, std::pair{Pace::kAny, "any"}};
}

struct RolloutParams {
  std::string model;
  int64_t samples_per_group = 1;
  int64_t worst_sample_tokens = 4;
  int64_t pause_us = 0;
  Pace pace = Pace::kEven;
  int64_t timing_seed = 0;
  bool first_done_first = false;
};

// Draws one token a step for every running sample.
class ToyRollout final : public Rollout {
 public:
  static void describe(Contract<RolloutParams>& c) {
    c.type("toy_rollout", "samples of hashed lengths");
    c.model("model", &RolloutParams::model, ModelUse::kSamples).doc("whose weights decide the samples");
    c.param("samples_per_group", &RolloutParams::samples_per_group).at_least(1).doc("samples");
    c.param("worst_sample_tokens", &RolloutParams::worst_sample_tokens).at_least(2).doc("tokens");
    c.param("pause_us", &RolloutParams::pause_us).doc("longest pause of a step");
    c.param("pace", &RolloutParams::pace).doc("which samples wait longest for their first token");
    c.param("timing_seed", &RolloutParams::timing_seed).doc("of what takes any time");
    c.param("first_done_first", &RolloutParams::first_done_first)
        .doc("a mistake: what is done first takes the place of the oldest");
    c.reads(kOrigin);
    c.writes(kDrawn);
    c.needs([](const RolloutParams& p, NodeNeeds& needs) {
      needs.samples_per_group = p.samples_per_group;
      needs.worst_sample_tokens = p.worst_sample_tokens;
      needs.on_demand_tokens = 2;
      needs.shared_prompt_tokens = kPrompt;
    });
  }
  ToyRollout(const RolloutParams& params, NodeResources& resources)
      : params_(params),
        on_demand_(resources.admission == Admission::kOnDemand),
        credit_(2, order_of_groups(resources.world)),
        pauses_(resources.seed, 1),
        waits_(static_cast<uint64_t>(params.timing_seed), 2) {
    if (!params.model.empty()) model_ = std::dynamic_pointer_cast<ToyModel>(resources.models.at(params.model));
  }

  void begin_iteration(const Iteration& iteration) override {
    weights_ = model_ ? model_->published(iteration.policy_version) : 1;
  }

  int64_t worst_tokens(const Group&) const override { return params_.samples_per_group * params_.worst_sample_tokens; }

  int64_t least_tokens(const Group&) const override {
    return params_.samples_per_group * credit_.least(kPrompt, params_.worst_sample_tokens);
  }

  void start(Group group) override {
    Running running{.group = std::move(group), .drawn = {}, .made = {}, .waits = {}};
    for (int64_t s = 0; s < params_.samples_per_group; ++s) {
      const auto origin = static_cast<uint64_t>(running.group.read(kOrigin)[0]);
      running.drawn.push_back(mix(mix(origin, static_cast<uint64_t>(s)), weights_));
      running.made.push_back(0);
      running.waits.push_back(steps_to_wait(sample_tokens(running.drawn.back(), params_.worst_sample_tokens)));
      if (on_demand_) credit_.start({running.group.index, s}, kPrompt, params_.worst_sample_tokens);
    }
    running_.push_back(std::move(running));
  }

  void step(Sink& sink) override {
    if (params_.pause_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(pauses_.below(static_cast<uint64_t>(params_.pause_us))));
    int64_t sampled = 0;
    for (Running& running : running_) {
      for (size_t s = 0; s < running.drawn.size(); ++s) sampled += advance(running, s, sink);
    }
    sink.worked(0, sampled);
    if (on_demand_) credit_.settle(sink);
    for (size_t r = 0; r < running_.size();) {
      if (!complete(running_[r])) {
        ++r;
        continue;
      }
      if (params_.first_done_first) std::swap(running_[r].group.index, oldest().group.index);
      finish(running_[r], sink);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(r));
    }
  }

  bool idle() const override { return running_.empty(); }
  bool blocked() const override { return on_demand_ && credit_.blocked(); }

 private:
  struct Running {
    Group group;
    std::vector<uint64_t> drawn;
    std::vector<int64_t> made;   // tokens so far, of each sample
    std::vector<int64_t> waits;  // steps until its first one
  };

  int64_t steps_to_wait(int64_t tokens) {
    const int64_t worst = params_.worst_sample_tokens;
    switch (params_.pace) {
      case Pace::kEven:
        return 0;
      case Pace::kLongLast:
        return tokens;
      case Pace::kLongFirst:
        return 2 * (worst - tokens);
      case Pace::kAny:
        return static_cast<int64_t>(waits_.below(static_cast<uint64_t>(2 * worst)));
    }
    throw InternalError("no such pace");
  }

  int64_t wanted(const Running& running, size_t s) const { return sample_tokens(running.drawn[s], params_.worst_sample_tokens); }

  // True if the sample got a token.
  bool advance(Running& running, size_t s, Sink& sink) {
    if (running.waits[s] > 0) {
      --running.waits[s];
      return false;
    }
    const SampleCredit::Key key{running.group.index, static_cast<int64_t>(s)};
    const int64_t most = wanted(running, s);
    if (running.made[s] == most || (on_demand_ && !credit_.holds(key))) return false;
    const bool ends = ++running.made[s] == most;
    if (on_demand_ && ends)
      credit_.end(key, most, sink);
    else if (on_demand_)
      credit_.set_need(key, running.made[s] + 1);
    else if (ends && !params_.first_done_first)
      sink.return_credit(key.group, params_.worst_sample_tokens - most);
    return true;
  }

  Running& oldest() {
    return *std::ranges::min_element(running_, {}, [](const Running& running) { return running.group.index; });
  }

  bool complete(const Running& running) const {
    if (on_demand_) return credit_.may_finish(running.group.index);
    for (size_t s = 0; s < running.made.size(); ++s) {
      if (running.made[s] < wanted(running, s)) return false;
    }
    return true;
  }

  void finish(Running& running, Sink& sink) {
    credit_.forget(running.group.index);
    running.group.layout = Layout();
    for (const int64_t tokens : running.made) running.group.layout.add_sample(tokens, tokens - 1);
    running.group.layout.end_group();
    auto drawn = running.group.write(kDrawn);
    for (size_t s = 0; s < drawn.size(); ++s) drawn[s] = static_cast<int64_t>(running.drawn[s]);
    sink.finish(std::move(running.group));
  }

  static constexpr int64_t kPrompt = 1;

  RolloutParams params_;
  const bool on_demand_;
  SampleCredit credit_;
  RandomStream pauses_, waits_;
  std::shared_ptr<ToyModel> model_;
  uint64_t weights_ = 1;
  std::vector<Running> running_;
};

struct MixParams {
  std::vector<std::string> reads;
  std::string writes;
  bool barrier = false;
  int64_t pause_us = 0;
  int64_t fail_in_iteration = -1;
  bool remembers = false;
};

class ToyMix final : public Node {
 public:
  static void describe(Contract<MixParams>& c) {
    c.type("toy_mix", "hashes sample columns into another");
    c.param("reads", &MixParams::reads).required().doc("columns");
    c.param("writes", &MixParams::writes).required().doc("column");
    c.param("barrier", &MixParams::barrier).doc("iteration scope");
    c.param("pause_us", &MixParams::pause_us).doc("longest pause of a call");
    c.param("fail_in_iteration", &MixParams::fail_in_iteration).doc("throw there");
    c.param("remembers", &MixParams::remembers).doc("every value depends on all earlier iterations too");
    c.writes_named(&MixParams::writes, DType::kInt64, Extent::kSample);
    c.metric("mix/NODE", Metric::kValue, "a hash of all values");
    c.iteration_scope_if([](const MixParams& p) { return p.barrier; }, "barrier = true");
    c.needs([](const MixParams& p, NodeNeeds& needs) {
      for (const std::string& name : p.reads) needs.reads.push_back({name, DType::kInt64, Extent::kSample});
    });
  }
  ToyMix(const MixParams& params, NodeResources& resources)
      : params_(params),
        name_(name_hash(resources.node)),
        label_("mix/" + resources.node),
        metrics_(*resources.metrics),
        pauses_(resources.seed, name_) {}

  void begin_iteration(const Iteration& iteration) override { fold_ = mix(name_, static_cast<uint64_t>(iteration.index)); }
  void save(StateWriter& state) const override { state.put("memory", static_cast<int64_t>(memory_)); }
  void load(const StateReader& state) override { memory_ = static_cast<uint64_t>(state.integer("memory")); }

  void process(MicroBatch& batch) override {
    if (batch.iteration() == params_.fail_in_iteration) throw std::runtime_error("as asked");
    if (params_.pause_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(pauses_.below(static_cast<uint64_t>(params_.pause_us))));
    const auto out = batch.write({params_.writes, DType::kInt64, Extent::kSample}).entries<int64_t>();
    for (size_t s = 0; s < out.size(); ++s) {
      uint64_t value = name_ ^ memory_;
      for (const std::string& name : params_.reads) {
        value = mix(value, static_cast<uint64_t>(batch.read({name, DType::kInt64, Extent::kSample}).entries<int64_t>()[s]));
      }
      out[s] = static_cast<int64_t>(value);
      fold_ = mix(fold_, value);
    }
  }

  // Of a barrier every value depends on all values of the iteration.
  void process_iteration(int64_t, std::span<MicroBatch> batches) override {
    for (MicroBatch& batch : batches) process(batch);
    for (MicroBatch& batch : batches) {
      for (int64_t& value : batch.written({params_.writes, DType::kInt64, Extent::kSample}).entries<int64_t>()) {
        value = static_cast<int64_t>(mix(static_cast<uint64_t>(value), fold_));
      }
    }
  }

  void end_iteration(const Iteration&) override {
    metrics_.value(label_, static_cast<double>(fold_ >> 12));
    if (params_.remembers) memory_ = mix(memory_, fold_);
  }

 private:
  MixParams params_;
  uint64_t name_;
  std::string label_;
  MetricsRecorder& metrics_;
  RandomStream pauses_;
  uint64_t fold_ = 0;
  uint64_t memory_ = 0;
};

struct FilterParams {
  std::vector<std::string> reads;
  int64_t drop_one_in = 3;
  int64_t most_draws = 1;
  double oversample = 1;
};

class ToyFilter final : public Node {
 public:
  static void describe(Contract<FilterParams>& c) {
    c.type("toy_filter", "drops groups by their hash");
    c.param("reads", &FilterParams::reads).required().doc("columns");
    c.param("drop_one_in", &FilterParams::drop_one_in).at_least(1).doc("of so many groups one is dropped; 1: all");
    c.param("most_draws", &FilterParams::most_draws).at_least(1).doc("times groups_per_iteration");
    c.param("oversample", &FilterParams::oversample).at_least(1).doc("times what is missing");
    c.drops_groups();
    c.needs([](const FilterParams& p, NodeNeeds& needs) {
      for (const std::string& name : p.reads) needs.reads.push_back({name, DType::kInt64, Extent::kSample});
      needs.most_draws = p.most_draws;
      needs.oversample = p.oversample;
    });
  }
  explicit ToyFilter(const FilterParams& params) : params_(params) {}

  void process(MicroBatch& batch) override {
    const auto samples = batch.layout().samples_by_group();
    for (size_t g = 0; g < batch.groups(); ++g) {
      uint64_t verdict = 0;
      for (size_t s = samples[g].begin; s < samples[g].end; ++s) {
        for (const std::string& name : params_.reads) {
          verdict = mix(verdict, static_cast<uint64_t>(batch.read({name, DType::kInt64, Extent::kSample}).entries<int64_t>()[s]));
        }
      }
      if (verdict % static_cast<uint64_t>(params_.drop_one_in) == 0) batch.drop_group(g);
    }
  }

 private:
  FilterParams params_;
};

struct TrainParams {
  std::string model;
  std::string reads;
};

class ToyTrain final : public Node {
 public:
  static void describe(Contract<TrainParams>& c) {
    c.type("toy_train", "folds a column into the weights");
    c.model("model", &TrainParams::model, ModelUse::kUpdates).required().doc("trained");
    c.param("reads", &TrainParams::reads).required().doc("column");
    c.reads_named(&TrainParams::reads, DType::kInt64, Extent::kSample);
    c.metric("policy/weights", Metric::kValue, "a hash of them");
  }
  ToyTrain(const TrainParams& params, NodeResources& resources)
      : params_(params),
        model_(std::dynamic_pointer_cast<ToyModel>(resources.models.at(params.model))),
        metrics_(*resources.metrics) {}

  void process(MicroBatch& batch) override {
    for (const int64_t value : batch.read({params_.reads, DType::kInt64, Extent::kSample}).entries<int64_t>()) {
      gradient_ = mix(gradient_, static_cast<uint64_t>(value));
    }
  }

  void end_iteration(const Iteration&) override {
    model_->live = mix(model_->live, std::exchange(gradient_, 0));
    metrics_.value("policy/weights", static_cast<double>(model_->live >> 12));
  }

 private:
  TrainParams params_;
  std::shared_ptr<ToyModel> model_;
  MetricsRecorder& metrics_;
  uint64_t gradient_ = 0;
};

struct PublishParams {
  std::string model;
};

class ToyPublish final : public Node {
 public:
  static void describe(Contract<PublishParams>& c) {
    c.type("toy_publish", "publishes the weights");
    c.model("model", &PublishParams::model, ModelUse::kPublishes).required().doc("published");
  }
  ToyPublish(const PublishParams& params, NodeResources& resources)
      : model_(std::dynamic_pointer_cast<ToyModel>(resources.models.at(params.model))) {}

  void process(MicroBatch&) override {}
  void end_iteration(const Iteration& iteration) override { model_->publish(iteration.index + 1); }

 private:
  std::shared_ptr<ToyModel> model_;
};

class ToyModelType final : public ModelType {
 public:
  const ParamTable& params() const override { return params_; }

  std::shared_ptr<const void> bind(const ModelSpec& spec, BindContext& context, ModelFacts& facts) const override {
    params_.bind(nullptr, spec.params, context);
    facts = {.parameters = 1,
             .weight_bytes = 8,
             .kv_bytes_per_token = 8,
             .max_positions = 1 << 20,
             .trainable = true,
             .head = "language_model",
             .experts = spec.name.text.starts_with("mixture") ? 4 : 0};
    return std::make_shared<int>(0);
  }

  std::shared_ptr<Model> load(const std::shared_ptr<const void>&, const ModelUsage& usage) const override {
    return std::make_shared<ToyModel>(usage);
  }

 private:
  ParamTable params_;
};

}  // namespace

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t name_hash(const std::string& text) {
  uint64_t hash = 0;
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

int64_t sample_tokens(uint64_t drawn, int64_t worst_sample_tokens) {
  return 2 + static_cast<int64_t>(drawn % static_cast<uint64_t>(worst_sample_tokens - 1));
}

void register_toys(Registry& registry) {
  registry.add<ToySource>();
  registry.add<ToyRollout>();
  registry.add<ToyMix>();
  registry.add<ToyFilter>();
  registry.add<ToyTrain>();
  registry.add<ToyPublish>();
  registry.set_model_type(std::make_unique<ToyModelType>());
}

}  // namespace sluice::engine::toy
