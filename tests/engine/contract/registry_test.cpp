#include "engine/contract/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/text/strings.h"
#include "tests/engine/toy_nodes.h"

namespace sluice::engine::testing::registry_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct NoParams {};

class Silent final : public Node {
 public:
  static void describe(Contract<NoParams>& c) { c.type("gae", "takes a name that is taken"); }
  explicit Silent(const NoParams&) {}
  void process(MicroBatch&) override {}
};

struct Reserved {
  std::string inputs;
};

class TakesInputs final : public Node {
 public:
  static void describe(Contract<Reserved>& c) {
    c.type("takes_inputs", "declares a key of the language");
    c.param("inputs", &Reserved::inputs);
  }
  explicit TakesInputs(const Reserved&) {}
  void process(MicroBatch&) override {}
};

std::string name_declared;  // by a description, which captures nothing

struct Shape {
  static constexpr const char* kComponent = "shape";
  virtual ~Shape() = default;
};

struct Side {
  double side = 0;
};

struct Square final : Shape {
  static void describe(Contract<Side>& c) {
    c.type("square", "with a side");
    c.param("side", &Side::side).above(0);
  }
  explicit Square(const Side&) {}
};

TEST(Registry, KnowsTheKindOfANodeFromItsBaseClass) {
  Registry registry;
  add_toy_nodes(registry);
  EXPECT_EQ(registry.find("prompts")->kind, NodeKind::kSource);
  EXPECT_EQ(registry.find("generate")->kind, NodeKind::kRollout);
  EXPECT_EQ(registry.find("gae")->kind, NodeKind::kOrdinary);
  EXPECT_EQ(registry.find("nothing"), nullptr);
}

TEST(Registry, RefusesANameThatIsTaken) {
  Registry registry;
  add_toy_nodes(registry);
  registry.set_origin("libmine.so");
  try {
    registry.add<Silent>();
    FAIL() << "taken name accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.problems()[0].message, "node type \"gae\" of libmine.so is already taken by builtin");
  }
}

TEST(Registry, KnowsDevicesByTheirKind) {
  Registry registry;
  registry.add_device_kind({.name = "npu", .missing = {}, .use = {}});
  EXPECT_TRUE(registry.is_device("npu:1"));
  for (const char* name : {"npu", "npu:x", "npu:128", "cuda:0", "cpu:1", "cpu"}) EXPECT_FALSE(registry.is_device(name)) << name;
  EXPECT_EQ(registry.device_names(), std::vector<std::string>{"npu:N"});
}

TEST(Registry, RefusesAKindOfDevicesThatIsTaken) {
  Registry registry;
  registry.add_device_kind({.name = "npu", .missing = {}, .use = {}});
  registry.set_origin("libmine.so");
  try {
    registry.add_device_kind({.name = "npu", .missing = {}, .use = {}});
    FAIL() << "taken name accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.problems()[0].message, "kind of devices \"npu\" of libmine.so is already taken by builtin");
  }
}

TEST(Registry, RefusesAComponentThatIsTaken) {
  Registry registry;
  add_toy_nodes(registry);
  EXPECT_THROW(add_toy_nodes(registry), UserError);
}

TEST(Registry, RefusesParametersThatTheLanguageUsesItself) {
  Registry registry;
  EXPECT_THROW(registry.add<TakesInputs>(), InternalError);
}

struct Bounded {
  double limit = std::numeric_limits<double>::infinity();
  int64_t count = 0;
  std::vector<double> weights{1, -1};
};

template <class Description>
class Declares final : public Node {
 public:
  static void describe(Contract<Bounded>& c) {
    c.type("declares", "declares parameters");
    Description()(c);
  }
  explicit Declares(const Bounded&) {}
  void process(MicroBatch&) override {}
};

template <class Description>
std::string refusal(Description) {
  Registry registry;
  try {
    registry.add<Declares<Description>>();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "accepted";
}

// A run writes all of them out, and would not be able to read them on the day it goes on.
TEST(Registry, RefusesParametersWhosePipelineCouldNotBeReadAgain) {
  using C = Contract<Bounded>;
  const std::string type = "node type \"declares\": ";
  EXPECT_EQ(refusal([](C& c) { c.param("limit", &Bounded::limit).above(0); }),
            type +
                "the default of parameter limit, inf, is not what it takes: a number above 0 (inf only where that is the upper "
                "bound)");
  EXPECT_THAT(refusal([](C& c) { c.param("limit", &Bounded::limit); }), HasSubstr("the default of parameter limit, inf"));
  EXPECT_THAT(refusal([](C& c) { c.param("count", &Bounded::count).at_least(1); }),
              HasSubstr("the default of parameter count, 0"));
  EXPECT_THAT(refusal([](C& c) { c.param("weights", &Bounded::weights).above(0); }), HasSubstr("parameter weights, [1.0, -1.0]"));
  EXPECT_EQ(refusal([](C& c) { c.param("count", &Bounded::count).between(10, 5); }),
            type + "no number is in the bounds of parameter count: an integer from 10 to 5");
  for (const char* name : {"", "a b", "a.b", "c\"d"}) {
    const std::string fault = type + "parameter " + sluice::quoted(name) + " has a name that is no bare key of TOML";
    name_declared = name;
    EXPECT_THAT(refusal([](C& c) { c.param(name_declared, &Bounded::count); }), StartsWith(fault));
  }
}

TEST(Registry, TakesABoundThatMayBeNone) {
  EXPECT_EQ(refusal([](Contract<Bounded>& c) {
              c.param("limit", &Bounded::limit).above(0).at_most(std::numeric_limits<double>::infinity());
            }),
            "accepted");
  EXPECT_EQ(refusal([](Contract<Bounded>& c) { c.param("count", &Bounded::count).at_least(1).required(); }), "accepted");
}

TEST(Registry, RefusesAComponentWhoseDefaultsItDoesNotTake) {
  Registry registry;
  EXPECT_THROW((registry.add_component<Shape, Square>()), InternalError);
}

TEST(Registry, RemembersWhereATypeComesFrom) {
  Registry registry;
  registry.set_origin("libmine.so");
  registry.add<Silent>();
  EXPECT_EQ(registry.find("gae")->origin, "libmine.so");
}

}  // namespace
}  // namespace sluice::engine::testing::registry_test
