#include "engine/node_reference.h"

#include <gtest/gtest.h>

#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing {
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
}  // namespace sluice::engine::testing
