#include "engine/plan/recorded_origin.h"

#include <gtest/gtest.h>

namespace sluice::engine::recorded_origin_test {
namespace {

// Of two lines, the place of each first character.
bool written_together(const std::string& heading, const std::string& one, const std::string& other) {
  const auto source = std::make_shared<SourceText>(SourceText{.name = "pipeline.toml", .text = heading + one + "\n" + other});
  return were_written_together({source, 2, 1, 1}, {source, 3, 1, 1});
}

TEST(RecordedOrigin, ValuesOfOneFileWereWrittenTogether) {
  EXPECT_TRUE(written_together("[pipeline]\n", "a = 1", "b = 2"));
  EXPECT_FALSE(were_written_together({std::make_shared<SourceText>(), 1, 1, 1}, {std::make_shared<SourceText>(), 1, 1, 1}));
}

TEST(RecordedOrigin, ThoseOfAnEffectivePipelineWhereOneLayerHasBoth) {
  const std::string heading(kConfigHeading);
  EXPECT_TRUE(written_together(heading, "a = 1  # x.toml:3", "b = \"  # y.toml:1\"  # x.toml:7; c in y.toml:2"));
  EXPECT_FALSE(written_together(heading, "a = 1  # x.toml:3", "b = 2  # y.toml:3"));
  EXPECT_FALSE(written_together(heading, "a = 1  # --set", "b = 2  # x.toml:3"));
  EXPECT_FALSE(written_together(heading, "a = 1  # --set", "b = 2  # --set"));
  EXPECT_FALSE(written_together(heading, "a = 1  # default", "b = 2  # default"));
  EXPECT_FALSE(written_together(heading, "a = 1", "b = 2"));
}

}  // namespace
}  // namespace sluice::engine::recorded_origin_test
