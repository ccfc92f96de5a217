// Node types that only a plugin would have, for the problems that none of the builtin types can cause.
#include "base/error.h"
#include "engine/contract/node.h"
#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"
#include "engine/plan/data_look.h"

namespace odd {

using namespace sluice;

constexpr engine::Column<float> kNumber{"number", engine::Extent::kGroup};
constexpr engine::Column<float> kScore{"score", engine::Extent::kSample};
constexpr engine::Column<float> kTokenRewards{"token_rewards", engine::Extent::kAction};
constexpr engine::Column<float> kAdvantages{"advantages", engine::Extent::kAction};
constexpr engine::Column<float> kReturns{"returns", engine::Extent::kAction};
constexpr engine::Column<float> kOldLogprobs{"old_logprobs", engine::Extent::kAction};
constexpr engine::Column<float> kCopy{"copy", engine::Extent::kAction};

struct NoParams {};

/// A source whose contract forgets to bound what an iteration has.
class Endless final : public engine::Source {
 public:
  static void describe(engine::Contract<NoParams>& c) {
    c.type("endless", "groups without a bound");
    c.writes(kNumber);
    c.needs([](const NoParams&, engine::NodeNeeds& needs) { needs.samples_per_group = needs.worst_sample_tokens = 1; });
  }
  explicit Endless(const NoParams&) {}
  bool next_group(engine::Group&) override { return false; }
};

/// A source without models, whose bytes are therefore the same on every machine.
class Numbers final : public engine::Source {
 public:
  static void describe(engine::Contract<NoParams>& c) {
    c.type("numbers", "a number a group");
    c.writes(kNumber);
    c.needs([](const NoParams&, engine::NodeNeeds& needs) {
      needs.groups_per_iteration = 512;
      needs.samples_per_group = 1;
      needs.worst_sample_tokens = 4;
    });
  }
  explicit Numbers(const NoParams&) {}
  bool next_group(engine::Group&) override { return false; }
};

/// A source whose data is looked at before a run, as that of the builtin ones.
class Readings final : public engine::Source {
 public:
  static void describe(engine::Contract<NoParams>& c) {
    c.type("readings", "a number a group, from a file that is broken");
    c.writes(kNumber);
    c.needs([](const NoParams&, engine::NodeNeeds& needs) {
      needs.groups_per_iteration = needs.samples_per_group = needs.worst_sample_tokens = 1;
    });
    c.data([](const NoParams&, engine::DataLook&) { throw UserError("readings.csv:3: \"x\" is not a number", "write one"); });
  }
  explicit Readings(const NoParams&) {}
  bool next_group(engine::Group&) override { return false; }
};

/// Checks only ask for contracts: none of these nodes ever runs.
template <class Description>
class Idle final : public engine::Node {
 public:
  static void describe(engine::Contract<NoParams>& c) { Description()(c); }
  explicit Idle(const NoParams&) {}
  void process(engine::MicroBatch&) override {}
};

struct Passing {
  void operator()(engine::Contract<NoParams>& c) const {
    c.type("passing", "reads what endless writes");
    c.reads(kNumber);
  }
};

struct DrawsButKeeps {
  void operator()(engine::Contract<NoParams>& c) const {
    c.type("draws_but_keeps", "asks for more groups in place of those that it does not drop");
    c.reads(kNumber);
    c.metric("toy/NODE/draws_but_keeps", engine::Metric::kMean, "so that it has an effect");
    c.needs([](const NoParams&, engine::NodeNeeds& needs) { needs.most_draws = 2; });
  }
};

struct OtherScore {
  void operator()(engine::Contract<NoParams>& c) const {
    c.type("other_score", "a second type that writes score");
    c.writes(kScore);
    c.metric("toy/NODE/other_score_mean", engine::Metric::kMean, "so that it has an effect");
  }
};

struct OddAdvantages {
  void operator()(engine::Contract<NoParams>& c) const {
    c.type("odd_advantages", "advantages, and returns that only a critic reads");
    c.reads(kTokenRewards);
    c.writes(kAdvantages, kReturns);
  }
};

struct TakesAName {
  void operator()(engine::Contract<NoParams>& c) const {
    c.type("takes_a_name", "records what the run records itself");
    c.reads(kNumber);
    c.metric("iteration", engine::Metric::kMean, "not the run's");
  }
};

struct NamesTwice {
  void operator()(engine::Contract<NoParams>& c) const {
    c.type("names_twice", "records two metrics under one name");
    c.reads(kNumber);
    c.metric("reward/number", engine::Metric::kMoments, "mean and standard deviation");
    c.metric("reward/number_mean", engine::Metric::kSum, "no mean");
  }
};

struct CopyOld {
  void operator()(engine::Contract<NoParams>& c) const {
    c.type("copy_old", "a copy of old_logprobs that nobody asked for");
    c.reads(kOldLogprobs);
    c.writes(kCopy);
  }
};

void add_types(engine::Registry& registry) {
  registry.add<Endless>();
  registry.add<Numbers>();
  registry.add<Readings>();
  registry.add<Idle<Passing>>();
  registry.add<Idle<DrawsButKeeps>>();
  registry.add<Idle<OtherScore>>();
  registry.add<Idle<OddAdvantages>>();
  registry.add<Idle<CopyOld>>();
  registry.add<Idle<TakesAName>>();
  registry.add<Idle<NamesTwice>>();
}

}  // namespace odd

SLUICE_PLUGIN(odd::add_types)
