#include "tests/engine/tally_nodes.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/numbers/random.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::toy {
namespace {

constexpr Column<float> kValue{"value", Extent::kSample};
constexpr Column<float> kMoved{"moved", Extent::kSample};

// Numbers of very different sizes, of either sign.
double number_of(int64_t drawn) {
  const auto bits = static_cast<uint64_t>(drawn);
  const double mantissa = static_cast<double>(bits % 100003) / 100003 - 0.4;
  return std::ldexp(mantissa, static_cast<int>(bits >> 40) % 12);
}

class Pauses {
 public:
  Pauses(const NodeResources& resources, int64_t longest_us)
      : longest_us_(longest_us),
        random_(mix(resources.seed, static_cast<uint64_t>(resources.world.rank)), name_hash(resources.node)) {}

  void pause() {
    if (longest_us_ == 0) return;
    const uint64_t time = random_.below(static_cast<uint64_t>(longest_us_));
    if (time > static_cast<uint64_t>(longest_us_) / 2) std::this_thread::sleep_for(std::chrono::microseconds(time));
  }

 private:
  const int64_t longest_us_;
  RandomStream random_;
};

struct StuckParams {
  int64_t stuck_on = 0, stuck_in = 0;
  std::string stuck_until;
  bool stuck_at_the_end = false;
};

// A call that does not return before a file is there: what hangs in a test would otherwise hang for ever.
class Stuck {
 public:
  template <class Params>
  static void describe(Contract<Params>& c) {
    using Number = int64_t Params::*;
    c.param("stuck_on", Number(&Params::stuck_on)).doc("rank");
    c.param("stuck_in", Number(&Params::stuck_in)).doc("iteration");
    c.param("stuck_until", static_cast<std::string Params::*>(&Params::stuck_until)).doc("file that ends it; empty: it never is");
    c.param("stuck_at_the_end", static_cast<bool Params::*>(&Params::stuck_at_the_end))
        .doc("of the iteration, not in a micro-batch");
  }

  Stuck(const StuckParams& params, const NodeResources& resources)
      : params_(params), is_mine_(!params.stuck_until.empty() && resources.world.rank == params.stuck_on) {}

  void work(int64_t iteration, bool at_the_end) {
    if (!is_mine_ || iteration != params_.stuck_in || at_the_end != params_.stuck_at_the_end) return;
    std::ofstream(params_.stuck_until + ".reached").close();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!std::filesystem::exists(params_.stuck_until)) {
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("nobody has ended what is stuck");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  const StuckParams params_;
  const bool is_mine_;
};

struct RecordParams : StuckParams {
  int64_t pause_us = 0;
};

class TallyRecord final : public Node {
 public:
  static void describe(Contract<RecordParams>& c) {
    c.type("tally_record", "records what it reads in every way");
    c.param("pause_us", &RecordParams::pause_us).doc("longest pause of a call");
    Stuck::describe(c);
    c.reads(kDrawn);
    c.writes(kValue);
    c.metric("tally/mean", Metric::kMean, "weighted");
    c.metric("tally/moments", Metric::kMoments, "of numbers far from zero");
    c.metric("tally/sum", Metric::kSum, "of all");
    c.metric("tally/max", Metric::kMaximum, "of all");
    c.metric("tally/coefficient", Metric::kValue, "of the iteration");
    c.metric("tally/none", Metric::kMean, "never recorded");
    c.metric_family("tally/of/", "by the last digit");
    c.total("values");
  }

  TallyRecord(const RecordParams& params, NodeResources& resources)
      : metrics_(*resources.metrics),
        totals_(*resources.totals),
        pauses_(resources, params.pause_us),
        stuck_(params, resources) {}

  void process(MicroBatch& batch) override {
    pauses_.pause();
    stuck_.work(batch.iteration(), /*at_the_end=*/false);
    const auto drawn = batch.read(kDrawn);
    const auto value = batch.write(kValue);
    for (size_t s = 0; s < drawn.size(); ++s) {
      const double number = number_of(drawn[s]);
      value[s] = static_cast<float>(number * coefficient_);
      metrics_.mean("tally/mean", number, 0.1 * static_cast<double>(1 + (drawn[s] & 3)));
      metrics_.moments("tally/moments", 1e6 + value[s]);
      metrics_.sum("tally/sum", value[s]);
      metrics_.maximum("tally/max", number);
      metrics_.mean("tally/of/" + std::to_string(drawn[s] & 7), number);
      totals_.add("values", value[s]);
    }
  }

  void end_iteration(const Iteration&) override {
    metrics_.value("tally/coefficient", coefficient_);
    const ExactMoments& values = totals_.of_all("values");
    if (values.count() > 0) coefficient_ = 1 / (1 + std::sqrt(values.squared_deviations() / values.count()));
  }

  void save(StateWriter& state) const override { state.put("coefficient", coefficient_); }
  void load(const StateReader& state) override { coefficient_ = state.number("coefficient"); }

 private:
  MetricsRecorder& metrics_;
  Totals& totals_;
  Pauses pauses_;
  Stuck stuck_;
  double coefficient_ = 1;
};

struct WhitenParams {
  int64_t steps = 1;
  int64_t pause_us = 0;
};

class TallyWhiten final : public Node {
 public:
  static void describe(Contract<WhitenParams>& c) {
    c.type("tally_whiten", "moves values by their moments over the iteration, several times");
    c.param("steps", &WhitenParams::steps).at_least(1).doc("times");
    c.param("pause_us", &WhitenParams::pause_us).doc("longest pause of a call");
    c.reads(kValue);
    c.writes(kMoved);
    c.metric("tally/moved", Metric::kMoments, "of the values that are written");
    c.metric("tally/steps", Metric::kValue, "that were made");
    c.total("moved");
    c.iteration_scope_if([](const WhitenParams&) { return true; }, "always");
    c.steps([](const WhitenParams& params) { return params.steps; });
  }

  TallyWhiten(const WhitenParams& params, NodeResources& resources)
      : params_(params), metrics_(*resources.metrics), totals_(*resources.totals), pauses_(resources, params.pause_us) {}

  void begin_iteration(const Iteration&) override { steps_ = 0; }
  void process(MicroBatch&) override {}  // it is a barrier

  void gather(int64_t step, std::span<MicroBatch> batches) override {
    pauses_.pause();
    ExactMoments& moved = totals_.mine("moved");
    for (MicroBatch& batch : batches) {
      if (step == 0) std::ranges::copy(batch.read(kValue), batch.write(kMoved).begin());
      for (const float value : batch.written(kMoved)) moved.add(value);
    }
  }

  void process_iteration(int64_t step, std::span<MicroBatch> batches) override {
    pauses_.pause();
    ++steps_;
    const ExactMoments& moved = totals_.of_all("moved");
    for (MicroBatch& batch : batches) {
      for (float& value : batch.written(kMoved)) {
        const double deviation = std::sqrt(moved.squared_deviations() / moved.count());
        value = static_cast<float>((value - moved.mean()) / (1 + deviation));
        if (step + 1 == params_.steps) metrics_.moments("tally/moved", value);
      }
    }
  }

  void end_iteration(const Iteration&) override { metrics_.value("tally/steps", static_cast<double>(steps_)); }

 private:
  const WhitenParams params_;
  MetricsRecorder& metrics_;
  Totals& totals_;
  Pauses pauses_;
  int64_t steps_ = 0;
};

struct NoParams {};

class TallyMove final : public Node {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("tally_move", "moves values by nothing, and keeps no iteration");
    c.reads(kValue);
    c.writes(kMoved);
  }
  explicit TallyMove(const NoParams&) {}

  void process(MicroBatch& batch) override { std::ranges::copy(batch.read(kValue), batch.write(kMoved).begin()); }
};

struct TrainParams : StuckParams {
  std::string model;
};

class TallyTrain final : public Node {
 public:
  static void describe(Contract<TrainParams>& c) {
    c.type("tally_train", "updates a model by a sum over all ranks");
    c.model("model", &TrainParams::model, ModelUse::kUpdates).required().doc("trained");
    Stuck::describe(c);
    c.reads(kMoved, kDrawn);
    c.metric("policy/weights", Metric::kValue, "a hash of them");
    c.total("gradient");
  }

  TallyTrain(const TrainParams& params, NodeResources& resources)
      : model_(std::dynamic_pointer_cast<ToyModel>(resources.models.at(params.model))),
        metrics_(*resources.metrics),
        totals_(*resources.totals),
        stuck_(params, resources) {}

  void process(MicroBatch& batch) override {
    stuck_.work(batch.iteration(), /*at_the_end=*/false);
    const auto moved = batch.read(kMoved);
    const auto drawn = batch.read(kDrawn);
    ExactMoments& gradient = totals_.mine("gradient");
    for (size_t s = 0; s < moved.size(); ++s) gradient.add(number_of(drawn[s]) * moved[s]);
  }

  void end_iteration(const Iteration& iteration) override {
    stuck_.work(iteration.index, /*at_the_end=*/true);
    model_->live = mix(model_->live, std::bit_cast<uint64_t>(totals_.sum_of_all("gradient")));
    metrics_.value("policy/weights", static_cast<double>(model_->live >> 12));
  }

 private:
  std::shared_ptr<ToyModel> model_;
  MetricsRecorder& metrics_;
  Totals& totals_;
  Stuck stuck_;
};

struct KeepParams {
  bool own = false;
};

// A node that goes wrong on several ranks: what it keeps is its rank's own.
class TallyKeep final : public Node {
 public:
  static void describe(Contract<KeepParams>& c) {
    c.type("tally_keep", "keeps a number");
    c.param("own", &KeepParams::own).doc("one of each rank");
    c.reads(kDrawn);
    c.metric("tally/kept", Metric::kSum, "groups");
  }
  TallyKeep(const KeepParams& params, NodeResources& resources)
      : kept_(params.own ? resources.world.rank : 7), metrics_(*resources.metrics) {}

  void process(MicroBatch& batch) override { metrics_.sum("tally/kept", static_cast<double>(batch.groups())); }
  void save(StateWriter& state) const override { state.put("kept", kept_); }

 private:
  const int64_t kept_;
  MetricsRecorder& metrics_;
};

}  // namespace

void register_tallies(Registry& registry) {
  registry.add<TallyKeep>();
  registry.add<TallyMove>();
  registry.add<TallyRecord>();
  registry.add<TallyWhiten>();
  registry.add<TallyTrain>();
}

}  // namespace sluice::engine::toy
