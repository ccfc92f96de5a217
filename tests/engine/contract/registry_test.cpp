#include "engine/contract/registry.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/engine/toy_nodes.h"

namespace sluice::engine::testing::registry_test {
namespace {

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

TEST(Registry, RemembersWhereATypeComesFrom) {
  Registry registry;
  registry.set_origin("libmine.so");
  registry.add<Silent>();
  EXPECT_EQ(registry.find("gae")->origin, "libmine.so");
}

}  // namespace
}  // namespace sluice::engine::testing::registry_test
