#include <gtest/gtest.h>

#include "engine/contract/preset_check.h"
#include "nodes/builtin.h"

namespace sluice::nodes::presets_test {
namespace {

// Each preset is bound against each type: no key that does not exist, no value that is refused.
TEST(Presets, FitTheBuiltinTypes) {
  engine::Registry registry;
  register_builtin(registry);
  EXPECT_EQ(registry.presets().size(), 4u);
  for (const auto& [name, preset] : registry.presets()) EXPECT_EQ(render(engine::preset_problems(preset, registry)), "") << name;
}

}  // namespace
}  // namespace sluice::nodes::presets_test
