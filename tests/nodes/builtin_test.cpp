#include "nodes/builtin.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text/strings.h"

namespace sluice::nodes::builtin_test {
namespace {

TEST(Builtin, EveryDefaultComponentIsRegistered) {
  engine::Registry registry;
  register_builtin(registry);
  int components = 0;
  for (const auto& [name, type] : registry.nodes()) {
    for (const engine::ParamInfo& param : type.info.params) {
      if (param.kind != engine::ParamKind::kComponent) continue;
      ++components;
      const bool found = std::ranges::any_of(registry.components(), [&](const auto& entry) {
        return entry.first.first == param.component && sluice::quoted(entry.first.second) == param.default_text;
      });
      EXPECT_TRUE(found) << name << ": " << param.name << " = " << param.default_text;
    }
  }
  EXPECT_GE(components,
            4);  // objective and value_objective of train_ppo, kl_controller of token_rewards, objective of train_dpo, ...
}

TEST(Builtin, EveryTypeAndParameterIsDescribed) {
  engine::Registry registry;
  register_builtin(registry);
  for (const auto& [name, type] : registry.nodes()) {
    EXPECT_FALSE(type.info.summary.empty()) << name;
    for (const engine::ParamInfo& param : type.info.params) EXPECT_FALSE(param.doc.empty()) << name << "." << param.name;
  }
}

}  // namespace
}  // namespace sluice::nodes::builtin_test
