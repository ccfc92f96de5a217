#include "engine/text/graph_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "base/text/strings.h"
#include "engine/check/check.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::graph_text_test {
namespace {

Plan whitened_plan(const Registry& registry) {
  return check(spec_of(edited(ppo_text(), "lambda = 0.95", "lambda = 0.95\nwhiten = \"iteration\"")), registry).plan.value();
}

TEST(GraphText, DrawsThePpoPipelineForGraphviz) {
  Registry registry;
  add_toy_nodes(registry);
  expect_golden("engine/graph/ppo.dot", dot_text(whitened_plan(registry)));
}

TEST(GraphText, DrawsThePpoPipelineForMermaid) {
  Registry registry;
  add_toy_nodes(registry);
  expect_golden("engine/graph/ppo.mmd", mermaid_text(whitened_plan(registry)));
}

// Frames around the roles, thick edges and bytes where something goes from rank to rank.
TEST(GraphText, DrawsRolesAsFrames) {
  Registry registry;
  add_toy_nodes(registry);
  const std::string roles = "[cluster.roles.train]\nranks = 2\n[cluster.roles.rollout]\nranks = 1\n";
  const Plan plan = check(spec_of(ppo_on_roles_text(roles, kOnRoles)), registry).plan.value();
  expect_golden("engine/graph/roles.dot", dot_text(plan));
  expect_golden("engine/graph/roles.mmd", mermaid_text(plan));
}

// After one role that does all else, and with a third one.
TEST(GraphText, DrawsFrozenModelsOnRanksOfTheirOwn) {
  Registry registry;
  add_toy_nodes(registry);
  std::map<std::string, std::string> on = kOnRoles;
  on["reference"] = "score";
  const std::string roles =
      "[cluster.roles.train]\nranks = 2\n[cluster.roles.rollout]\nranks = 1\n[cluster.roles.score]\nranks = 3\n";
  expect_golden("engine/graph/forward_roles.dot", dot_text(check(spec_of(ppo_on_roles_text(roles, on)), registry).plan.value()));
  for (auto& [node, role] : on)
    if (role != "score") role = "work";
  const std::string apart = "[cluster.roles.work]\nranks = 2\n[cluster.roles.score]\nranks = 1\n";
  expect_golden("engine/graph/forward_roles.mmd",
                mermaid_text(check(spec_of(ppo_on_roles_text(apart, on)), registry).plan.value()));
}

// What stands on the edges into `node`.
std::string edges_into(const std::string& node, const std::string& dot) {
  std::string text;
  for (const std::string& line : split(dot, '\n')) {
    if (line.find("-> \"" + node + "\" [label=") != std::string::npos) text += line + "\n";
  }
  return text;
}

TEST(GraphText, WhatOnlyPassesThroughStandsOnAnEdgeWhereAllIsWanted) {
  Registry registry;
  add_toy_nodes(registry);
  const Plan plan = whitened_plan(registry);
  EXPECT_EQ(edges_into("advantages", dot_text(plan)).find("tokens"), std::string::npos);  // for train, which comes later
  EXPECT_NE(edges_into("advantages", dot_text(plan, GraphColumns::kAll)).find("tokens"), std::string::npos);
  EXPECT_NE(mermaid_text(plan), mermaid_text(plan, GraphColumns::kAll));
}

// Both branches in front of rewards carry rollout_logprobs.
TEST(GraphText, AColumnThatComesOnTwoEdgesStandsOnOneOfThem) {
  Registry registry;
  add_toy_nodes(registry);
  const std::string edges = edges_into("rewards", dot_text(whitened_plan(registry)));
  const size_t first = edges.find(">rollout_logprobs");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(edges.find("rollout_logprobs", first + 2), std::string::npos);
}

TEST(GraphText, IsAcceptedByGraphvizAlsoWithAwkwardColumnNames) {
  if (std::system("dot -V 2>/dev/null") != 0) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << "Graphviz is not installed";
    GTEST_SKIP() << "Graphviz is not installed";
  }
  Registry registry;
  add_toy_nodes(registry);
  Plan plan = whitened_plan(registry);
  for (PlanColumn& column : plan.columns) column.spec.name += "<&>\"\\n|{}";
  plan.nodes[3].needs.scope_reason = "<b>&\"";
  const auto file = std::filesystem::path(::testing::TempDir()) / "sluice_graph_text_test.dot";
  std::ofstream(file) << dot_text(plan);
  const std::string command = "dot -Tsvg '" + file.string() + "' -o '" + file.string() + ".svg' 2> '" + file.string() + ".log'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream log(file.string() + ".log");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(log), {}), "");
}

TEST(GraphText, DrawsNoVersionLoopWhereNothingIsPublished) {
  Registry registry;
  add_toy_nodes(registry);
  const std::string text = ppo_text();
  const Plan plan = check(spec_of(text.substr(0, text.find("[nodes.train]"))), registry).plan.value();
  EXPECT_EQ(dot_text(plan).find("dashed"), std::string::npos);
  EXPECT_EQ(mermaid_text(plan).find("-.->"), std::string::npos);
}

}  // namespace
}  // namespace sluice::engine::testing::graph_text_test
