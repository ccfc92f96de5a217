// A graph in C++ alone, without torch and without TOML: a source counts, a node squares, a node sums. Prints the sum of each
// iteration.
#include <cstdio>

#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"

using namespace sluice;

constexpr engine::Column<float> kNumber{"number", engine::Extent::kGroup};
constexpr engine::Column<float> kSquare{"square", engine::Extent::kGroup};

struct NoParams {};

// A source makes groups. Here a group is one sample of one token, so that the budget has something to count.
class Count final : public engine::Source {
 public:
  static void describe(engine::Contract<NoParams>& c) {
    c.type("count", "counts upwards");
    c.writes(kNumber);
    c.needs([](const NoParams&, engine::NodeNeeds& needs) {
      needs.groups_per_iteration = 4;
      needs.samples_per_group = needs.worst_sample_tokens = 1;
    });
  }
  explicit Count(const NoParams&) {}

  bool next_group(engine::Group& group) override {
    group.layout.add_sample(/*tokens=*/1, /*actions=*/0);
    group.layout.end_group();
    group.write(kNumber)[0] = static_cast<float>(next_++);
    return true;
  }

 private:
  int next_ = 1;
};

class Square final : public engine::Node {
 public:
  static void describe(engine::Contract<NoParams>& c) {
    c.type("square", "the square of each number");
    c.reads(kNumber);
    c.writes(kSquare);
  }
  explicit Square(const NoParams&) {}

  void process(engine::MicroBatch& batch) override {
    const auto numbers = batch.read(kNumber);  // [G]
    auto squares = batch.write(kSquare);       // [G]
    for (size_t g = 0; g < batch.groups(); ++g) squares[g] = numbers[g] * numbers[g];
  }
};

class Sum final : public engine::Node {
 public:
  static void describe(engine::Contract<NoParams>& c) {
    c.type("sum", "the sum of the squares, as a metric");
    c.reads(kSquare);
    c.metric("numbers/sum_of_squares", engine::Metric::kSum, "over the iteration");
  }
  Sum(const NoParams&, engine::NodeResources& resources) : metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override {
    for (const float square : batch.read(kSquare)) metrics_.sum("numbers/sum_of_squares", square);
  }

 private:
  engine::MetricsRecorder& metrics_;
};

int main() {
  engine::Registry registry;
  registry.add<Count>(), registry.add<Square>(), registry.add<Sum>();
  const engine::CheckResult result = engine::check(engine::PipelineBuilder("hello", 3)
                                                       .budget(8, 2)
                                                       .node("numbers", "count", {})
                                                       .node("squares", "square", {"numbers"})
                                                       .node("total", "sum", {"squares"})
                                                       .build(),
                                                   registry);
  if (!result.plan) return std::fputs(render(result.problems).c_str(), stderr), 1;
  const auto print = [](const engine::IterationReport& r) {
    std::printf("iteration %d: %g\n", int(r.iteration), r.metric("numbers/sum_of_squares"));
  };
  return engine::Run(*result.plan, {.on_iteration = print}).execute().end == engine::RunEnd::kDone ? 0 : 1;
}
