#include "bench/bench_nodes.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/random.h"

namespace sluice::bench {
namespace {

using engine::Column;
using engine::Contract;
using engine::DType;
using engine::Extent;
using engine::Group;
using engine::MicroBatch;
using engine::NodeNeeds;

constexpr Column<int64_t> kNumber{"number", Extent::kGroup};
constexpr Column<int64_t> kDrawn{"drawn", Extent::kToken};

struct NumbersParams {
  int64_t groups_per_iteration = 1;
  int64_t samples_per_group = 1;
};

class Numbers final : public engine::Source {
 public:
  static void describe(Contract<NumbersParams>& c) {
    c.type("bench_numbers", "numbered groups of samples of one token");
    c.param("groups_per_iteration", &NumbersParams::groups_per_iteration).at_least(1).doc("groups");
    c.param("samples_per_group", &NumbersParams::samples_per_group).at_least(0).doc("samples; 0: a rollout makes them");
    c.writes(kNumber);
    c.needs([](const NumbersParams& p, NodeNeeds& needs) {
      needs.groups_per_iteration = p.groups_per_iteration;
      if (p.samples_per_group == 0) return;
      needs.samples_per_group = p.samples_per_group;
      needs.worst_sample_tokens = 1;
    });
  }
  explicit Numbers(const NumbersParams& params) : params_(params) {}

  bool next_group(Group& group) override {
    for (int64_t s = 0; s < params_.samples_per_group; ++s) group.layout.add_sample(1, 0);
    group.layout.end_group();
    group.write(kNumber)[0] = group.index;
    return true;
  }

 private:
  NumbersParams params_;
};

struct DrawParams {
  int64_t samples_per_group = 1;
  int64_t worst_sample_tokens = 8;
};

class Draw final : public engine::Rollout {
 public:
  static void describe(Contract<DrawParams>& c) {
    c.type("bench_draw", "samples of hashed lengths");
    c.param("samples_per_group", &DrawParams::samples_per_group).at_least(1).doc("samples");
    c.param("worst_sample_tokens", &DrawParams::worst_sample_tokens).at_least(2).doc("tokens");
    c.reads(kNumber);
    c.writes(kDrawn);
    c.needs([](const DrawParams& p, NodeNeeds& needs) {
      needs.samples_per_group = p.samples_per_group;
      needs.worst_sample_tokens = p.worst_sample_tokens;
    });
  }
  explicit Draw(const DrawParams& params) : params_(params) {}

  int64_t worst_tokens(const Group&) const override { return params_.samples_per_group * params_.worst_sample_tokens; }

  void start(Group group) override {
    Running running{.group = std::move(group), .lengths = {}};
    RandomStream lengths(1, static_cast<uint64_t>(running.group.iteration), static_cast<uint32_t>(running.group.index));
    for (int64_t s = 0; s < params_.samples_per_group; ++s) {
      running.lengths.push_back(2 + static_cast<int64_t>(lengths.below(static_cast<uint64_t>(params_.worst_sample_tokens - 1))));
    }
    running_.push_back(std::move(running));
  }

  void step(Sink& sink) override {
    for (Running& running : running_) advance(running, sink);
    for (Running& running : running_) {
      if (running.made == params_.worst_sample_tokens) finish(running, sink);
    }
    std::erase_if(running_, [this](const Running& running) { return running.made == params_.worst_sample_tokens; });
  }

  bool idle() const override { return running_.empty(); }

 private:
  struct Running {
    Group group;
    std::vector<int64_t> lengths;
    int64_t made = 0;  // tokens of the longest sample
  };

  void advance(Running& running, Sink& sink) const {
    ++running.made;
    const int64_t longest = std::ranges::max(running.lengths);
    for (const int64_t length : running.lengths) {
      if (length == running.made) sink.return_credit(running.group.index, params_.worst_sample_tokens - length);
    }
    sink.worked(0, std::ranges::count_if(running.lengths, [&](int64_t length) { return length >= running.made; }));
    if (running.made == longest) running.made = params_.worst_sample_tokens;
  }

  void finish(Running& running, Sink& sink) const {
    running.group.layout = {};
    for (const int64_t length : running.lengths) running.group.layout.add_sample(length, length - 1);
    running.group.layout.end_group();
    std::ranges::fill(running.group.write(kDrawn), running.group.index);
    sink.finish(std::move(running.group));
  }

  DrawParams params_;
  std::vector<Running> running_;
};

struct NoParams {};

class Touch final : public engine::Node {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("bench_touch", "looks at a column");
    c.reads(kNumber);
  }
  explicit Touch(const NoParams&) {}

  void process(MicroBatch& batch) override { sum_ += batch.read(kNumber)[0]; }

 private:
  int64_t sum_ = 0;
};

struct DeriveParams {
  std::string reads;
  std::string writes;
  int64_t sleep_us = 0;
};

class Derive final : public engine::Node {
 public:
  static void describe(Contract<DeriveParams>& c) {
    c.type("bench_derive", "one token column of another");
    c.param("reads", &DeriveParams::reads).required().doc("column");
    c.param("writes", &DeriveParams::writes).required().doc("column");
    c.param("sleep_us", &DeriveParams::sleep_us).at_least(0).doc("takes so long");
    c.reads_named(&DeriveParams::reads, DType::kInt64, Extent::kToken);
    c.writes_named(&DeriveParams::writes, DType::kInt64, Extent::kToken);
  }
  explicit Derive(const DeriveParams& params) : params_(params) {}

  void process(MicroBatch& batch) override {
    const auto from = batch.read({params_.reads, DType::kInt64, Extent::kToken}).entries<int64_t>();
    const auto to = batch.write({params_.writes, DType::kInt64, Extent::kToken}).entries<int64_t>();
    if (params_.sleep_us > 0) sleep_for_us(static_cast<double>(params_.sleep_us));
    std::ranges::transform(from, to.begin(), [](int64_t value) { return value + 1; });
  }

 private:
  DeriveParams params_;
};

struct SleepParams {
  int64_t sleep_us = 0;
  int64_t random_us = 0;
  int64_t stage = 0;
};

class Sleep final : public engine::Node {
 public:
  static void describe(Contract<SleepParams>& c) {
    c.type("bench_sleep", "takes time");
    c.param("sleep_us", &SleepParams::sleep_us).at_least(0).doc("always so long");
    c.param("random_us", &SleepParams::random_us).at_least(0).doc("and up to so long");
    c.param("stage", &SleepParams::stage).at_least(0).doc("names the random durations");
    c.reads(kNumber);
  }
  explicit Sleep(const SleepParams& params) : params_(params) {}

  void process(MicroBatch& batch) override {
    const double random = params_.random_us > 0 ? slept_us(params_.stage, batch.read(kNumber)[0], params_.random_us) : 0;
    sleep_for_us(static_cast<double>(params_.sleep_us) + random);
  }

 private:
  SleepParams params_;
};

}  // namespace

void register_bench_nodes(engine::Registry& registry) {
  registry.add<Numbers>();
  registry.add<Draw>();
  registry.add<Touch>();
  registry.add<Derive>();
  registry.add<Sleep>();
}

double slept_us(int64_t stage, int64_t group, int64_t random_us) {
  return static_cast<double>(random_us) * RandomStream(7, static_cast<uint64_t>(stage), static_cast<uint32_t>(group)).uniform();
}

void sleep_for_us(double us) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t ns = until.tv_nsec + std::llround(us * 1000);
  until.tv_sec += ns / 1'000'000'000;
  until.tv_nsec = ns % 1'000'000'000;
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void sleep_precisely() { ::prctl(PR_SET_TIMERSLACK, 1000UL); }

}  // namespace sluice::bench
