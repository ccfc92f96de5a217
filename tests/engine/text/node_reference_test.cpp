#include "engine/text/node_reference.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/json/json.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::node_reference_test {
namespace {

class NodeReference : public ::testing::Test {
 protected:
  void SetUp() override { add_toy_nodes(registry_); }
  void expect_described(const std::string& type) {
    expect_golden("engine/describe/" + type + ".txt", describe_text(*registry_.find(type), registry_));
  }

  Registry registry_;
};

TEST_F(NodeReference, DescribesARollout) { expect_described("generate"); }
TEST_F(NodeReference, DescribesANodeWithChoices) { expect_described("gae"); }
TEST_F(NodeReference, DescribesANodeWithAComponent) { expect_described("train_ppo"); }
TEST_F(NodeReference, DescribesANodeWithoutParameters) { expect_described("exact_match"); }

TEST_F(NodeReference, DescribesAComponent) {
  expect_golden("engine/describe/ppo_clip.txt", describe_text(*registry_.find_component("objective", "ppo_clip")));
}

TEST_F(NodeReference, ListsEveryTypeInMarkdown) {
  const std::string text = reference_markdown(registry_);
  for (const auto& [name, type] : registry_.nodes()) EXPECT_NE(text.find("\n### " + name + "\n"), std::string::npos) << name;
  expect_golden("engine/describe/reference.md", text);
}

TEST_F(NodeReference, DescribesTheTablesThatEveryPipelineMayHave) {
  const auto tables = described_tables(registry_);
  ASSERT_GE(tables.size(), 5u);
  EXPECT_EQ(tables[0].name, "pipeline");
  EXPECT_EQ(tables[1].name, "budget");
  const std::string text = describe_text(tables[1]);
  EXPECT_EQ(text.substr(0, text.find('\n')), "budget: the keys of [budget]");
  EXPECT_NE(text.find("\n  [budget]\n  tokens_in_flight = 1 "), std::string::npos) << text;
}

TEST_F(NodeReference, DescribesTheTablesOfRoles) {
  const auto tables = described_tables(registry_);
  const auto role = std::ranges::find(tables, "role", &DescribedTable::name);
  ASSERT_NE(role, tables.end());
  const std::string text = describe_text(*role);
  EXPECT_EQ(text.substr(0, text.find('\n')), "role: the keys of [cluster.roles.NAME]");
  EXPECT_NE(text.find("\n  [cluster.roles.NAME]\n  ranks = 1 "), std::string::npos) << text;
}

TEST_F(NodeReference, HasEveryTypeInJson) {
  const Json known = Json::parse(reference_json(registry_));
  ASSERT_EQ(known["nodes"].size(), registry_.nodes().size());
  const Json& gae = *std::ranges::find(known["nodes"], "gae", [](const Json& node) { return node["type"].get<std::string>(); });
  EXPECT_EQ(gae["writes"][0], (Json{{"name", "advantages"}, {"dtype", "float32"}, {"extent", "action"}}));
  EXPECT_EQ(gae["parameters"].size(), registry_.find("gae")->info.params.size());
}

// What it says about itself is what check() accepts.
TEST_F(NodeReference, GivesABlockWhoseKeysAreParameters) {
  for (const auto& [name, type] : registry_.nodes()) {
    std::string text = describe_text(type, registry_);
    std::string block;
    for (size_t at = text.find("  [nodes."); at < text.size();) {
      const size_t end = text.find('\n', at);
      std::string line = text.substr(at + 2, end - at - 2);
      if (line.starts_with("# ")) line = line.substr(2);
      block += line.substr(0, line.find("  #")) + "\n";
      at = end + 1;
    }
    const PipelineSpec spec = spec_of(block);
    EXPECT_EQ(spec.nodes[0].type.text, name);
    for (const Entry& entry : spec.nodes[0].params.entries) EXPECT_NE(type.params.find(entry.key), nullptr) << entry.key;
  }
}

}  // namespace
}  // namespace sluice::engine::testing::node_reference_test
