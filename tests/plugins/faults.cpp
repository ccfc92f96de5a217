// Node types that go wrong, for the tests of what a run then does: each works until iteration `at`, then does what `fault` says
// ("grow": keeps memory, in every iteration).
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/contract/node.h"
#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"
#include "nodes/rollout/environments/environment.h"

namespace faults {

using namespace sluice;

enum class Fault { kThrow, kHang, kMissingColumn, kUndeclaredColumn, kSlow, kLeak, kGrow, kExit, kCrash };
constexpr std::array<std::pair<Fault, const char*>, 9> enum_names(Fault) {
  return {{{Fault::kThrow, "throw"},
           {Fault::kHang, "hang"},
           {Fault::kMissingColumn, "missing_column"},
           {Fault::kUndeclaredColumn, "undeclared_column"},
           {Fault::kSlow, "slow"},
           {Fault::kLeak, "leak"},
           {Fault::kGrow, "grow"},
           {Fault::kExit, "exit"},
           {Fault::kCrash, "crash"}}};
}

struct FaultParams {
  Fault fault = Fault::kThrow;
  int64_t at = 2;
  int64_t groups_per_iteration = 8;
};

constexpr engine::Column<float> kPassed{"passed", engine::Extent::kSample};
constexpr engine::Column<float> kUndeclared{"undeclared", engine::Extent::kSample};
constexpr engine::Column<std::string> kPrompt{"prompt", engine::Extent::kGroup};
constexpr engine::Column<std::string> kLabel{"label", engine::Extent::kGroup};
constexpr engine::Column<int64_t> kTokens{"tokens", engine::Extent::kToken};
constexpr engine::Column<float> kRolloutLogprobs{"rollout_logprobs", engine::Extent::kAction};
constexpr engine::Column<std::string> kResponse{"response", engine::Extent::kSample};

void describe_params(engine::Contract<FaultParams>& c) {
  c.param("fault", &FaultParams::fault).doc("what goes wrong");
  c.param("at", &FaultParams::at).doc("in which iteration");
}

// What can go wrong without columns.
void go_wrong(const FaultParams& params) {
  if (params.fault == Fault::kThrow) throw std::runtime_error("a fault, as asked");
  if (params.fault == Fault::kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  if (params.fault == Fault::kLeak) {
    volatile char* lost = new char[1000];
    lost[0] = 1;
  }
  if (params.fault == Fault::kExit) std::exit(0);
  if (params.fault == Fault::kCrash) ::raise(SIGSEGV);
  while (params.fault == Fault::kHang) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// An ordinary node that can stand anywhere after the rollout.
class FaultyNode final : public engine::Node {
 public:
  static void describe(engine::Contract<FaultParams>& c) {
    c.type("faulty", "works, until it does not");
    describe_params(c);
    c.reads(kTokens);
    c.writes(kPassed);
    c.metric("toy/NODE/faulty", engine::Metric::kMean, "so that it has an effect");
  }
  explicit FaultyNode(const FaultParams& params) : params_(params) {}

  void process(engine::MicroBatch& batch) override {
    const bool now = batch.iteration() == params_.at;
    if (now) go_wrong(params_);
    if (params_.fault == Fault::kGrow) kept_.emplace_back(16'000);
    if (now && params_.fault == Fault::kUndeclaredColumn) batch.write(kUndeclared);
    if (!now || params_.fault != Fault::kMissingColumn) batch.write(kPassed);
  }

 private:
  const FaultParams params_;
  std::vector<std::vector<char>> kept_;  // of all iterations
};

/// A source of sums.
class FaultySource final : public engine::Source {
 public:
  static void describe(engine::Contract<FaultParams>& c) {
    c.type("faulty_source", "sums, until there are none");
    describe_params(c);
    c.param("groups_per_iteration", &FaultParams::groups_per_iteration).at_least(1).doc("sums");
    c.writes(kPrompt, kLabel);
    c.needs([](const FaultParams& p, engine::NodeNeeds& needs) { needs.groups_per_iteration = p.groups_per_iteration; });
  }
  explicit FaultySource(const FaultParams& params) : params_(params) {}

  bool next_group(engine::Group& group) override {
    const bool now = group.iteration == params_.at;
    if (now) go_wrong(params_);
    group.layout.end_group();
    group.write(kPrompt)[0] = "12+34=";
    if (now && params_.fault == Fault::kUndeclaredColumn) {
      group.columns.back().spec.name = "undeclared";
    }
    if (!now || params_.fault != Fault::kMissingColumn) group.write(kLabel)[0] = "46";
    return true;
  }

 private:
  const FaultParams params_;
};

/// A rollout that answers everything with the prompt's first token.
class FaultyRollout final : public engine::Rollout {
 public:
  static void describe(engine::Contract<FaultParams>& c) {
    c.type("faulty_rollout", "two samples of two tokens a group, until it does not");
    describe_params(c);
    c.reads(kPrompt);
    c.writes(kTokens, kRolloutLogprobs, kResponse);
    c.needs([](const FaultParams&, engine::NodeNeeds& needs) {
      needs.samples_per_group = 2;
      needs.worst_sample_tokens = 2;
    });
  }
  explicit FaultyRollout(const FaultParams& params) : params_(params) {}

  int64_t worst_tokens(const engine::Group&) const override { return 4; }
  void start(engine::Group group) override { groups_.push_back(std::move(group)); }
  bool idle() const override { return groups_.empty(); }

  void step(Sink& sink) override {
    engine::Group group = std::move(groups_.back());
    groups_.pop_back();
    const bool now = group.iteration == params_.at;
    if (now) go_wrong(params_);
    sink.worked(2, 2);
    group.layout = {};
    group.layout.add_sample(2, 1);
    group.layout.add_sample(2, 1);
    group.layout.end_group();
    for (int64_t& token : group.write(kTokens)) token = 1;
    for (std::string& text : group.write(kResponse)) text = "46";
    if (now && params_.fault == Fault::kUndeclaredColumn) group.write(kUndeclared);
    if (!now || params_.fault != Fault::kMissingColumn) group.write(kRolloutLogprobs);
    sink.finish(std::move(group));
  }

 private:
  const FaultParams params_;
  std::vector<engine::Group> groups_;
};

/// Replies that every sample is done. It waits for nothing with a limit, so no call of it can be given up.
class FaultyEnvironment final : public nodes::Environment {
 public:
  static void describe(engine::Contract<FaultParams>& c) {
    c.type("faulty_environment", "one turn, until there is none");
    describe_params(c);
  }
  explicit FaultyEnvironment(const FaultParams& params) : params_(params) {}

  nodes::Reply reply(const nodes::Turn& turn) const override {
    if (turn.iteration == params_.at) go_wrong(params_);
    return {.text = {}, .done = true, .reward = {}};
  }

 private:
  const FaultParams params_;
};

void register_faults(engine::Registry& registry) {
  registry.add<FaultyNode>();
  registry.add<FaultySource>();
  registry.add<FaultyRollout>();
  registry.add_component<nodes::Environment, FaultyEnvironment>();
}

}  // namespace faults

SLUICE_PLUGIN(faults::register_faults)
