// The nodes of example 1 as a plugin, so that a TOML file can wire them: see hello.toml beside this file.
#include "engine/contract/node.h"
#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"

namespace hello {

using namespace sluice;

constexpr engine::Column<float> kNumber{"number", engine::Extent::kGroup};
constexpr engine::Column<float> kSquare{"square", engine::Extent::kGroup};

struct CountParams {
  int64_t groups_per_iteration = 4;
  int64_t first = 1;
};

/// Counts upwards: a group is one sample of one token, with its number.
class Count final : public engine::Source {
 public:
  static void describe(engine::Contract<CountParams>& c) {
    c.type("count", "counts upwards");
    c.param("groups_per_iteration", &CountParams::groups_per_iteration).at_least(1).doc("numbers an iteration");
    c.param("first", &CountParams::first).doc("the first number");
    c.writes(kNumber);
    c.needs([](const CountParams& p, engine::NodeNeeds& needs) {
      needs.groups_per_iteration = p.groups_per_iteration;
      needs.samples_per_group = needs.worst_sample_tokens = 1;
    });
  }
  explicit Count(const CountParams& params) : next_(params.first) {}

  bool next_group(engine::Group& group) override {
    group.layout.add_sample(/*tokens=*/1, /*actions=*/0);
    group.layout.end_group();
    group.write(kNumber)[0] = static_cast<float>(next_++);
    return true;
  }
  void save(engine::StateWriter& state) const override { state.put("next", next_); }
  void load(const engine::StateReader& state) override { next_ = state.integer("next"); }

 private:
  int64_t next_;
};

struct SquareParams {};

/// Squares each number.
class Square final : public engine::Node {
 public:
  static void describe(engine::Contract<SquareParams>& c) {
    c.type("square", "the square of each number");
    c.reads(kNumber);
    c.writes(kSquare);
  }
  explicit Square(const SquareParams&) {}

  void process(engine::MicroBatch& batch) override {
    const auto numbers = batch.read(kNumber);  // [G]
    auto squares = batch.write(kSquare);       // [G]
    for (size_t g = 0; g < batch.groups(); ++g) squares[g] = numbers[g] * numbers[g];
  }
};

struct SumParams {
  double scale = 1.0;
};

/// The scaled sum of an iteration, as a metric.
class Sum final : public engine::Node {
 public:
  static void describe(engine::Contract<SumParams>& c) {
    c.type("sum", "the sum of the squares, as a metric");
    c.param("scale", &SumParams::scale).above(0).doc("factor of the sum");
    c.reads(kSquare);
    c.metric("numbers/sum_of_squares", engine::Metric::kSum, "over the iteration");
  }
  Sum(const SumParams& params, engine::NodeResources& resources) : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override {
    for (const float square : batch.read(kSquare)) metrics_.sum("numbers/sum_of_squares", params_.scale * square);
  }

 private:
  SumParams params_;
  engine::MetricsRecorder& metrics_;
};

void register_nodes(engine::Registry& registry) {
  registry.add<Count>();
  registry.add<Square>();
  registry.add<Sum>();
}

}  // namespace hello

SLUICE_PLUGIN(hello::register_nodes)
