#include "models/kernels/rotary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json/json.h"
#include "tests/golden.h"

namespace sluice::models::rotary_test {
namespace {

RopeScaling scaling_of(const std::string& name) {
  const std::map<std::string, RopeScaling> kinds{{"default", RopeScaling::kNone},    {"linear", RopeScaling::kLinear},
                                                 {"dynamic", RopeScaling::kDynamic}, {"yarn", RopeScaling::kYarn},
                                                 {"llama3", RopeScaling::kLlama3},   {"longrope", RopeScaling::kLongrope}};
  return kinds.at(name);
}

// A case of the golden file as the reader of a config.json would give it.
ModelConfig config_of(const Json& golden) {
  const Json& rope = golden["rope"];
  ModelConfig config;
  config.head_dim = golden["head_dim"];
  config.max_positions = golden["max_positions"];
  config.rope.theta = rope["rope_theta"];
  config.rope.dims = static_cast<int64_t>(static_cast<double>(config.head_dim) * rope.value("partial_rotary_factor", 1.0));
  config.rope.scaling = scaling_of(rope["rope_type"]);
  config.rope.factor = rope.value("factor", 1.0);
  config.rope.original_positions = rope.value("original_max_position_embeddings", config.max_positions);
  config.rope.low_frequency_factor = rope.value("low_freq_factor", 1.0);
  config.rope.high_frequency_factor = rope.value("high_freq_factor", 4.0);
  config.rope.beta_fast = rope.value("beta_fast", 32.0);
  config.rope.beta_slow = rope.value("beta_slow", 1.0);
  config.rope.truncate = rope.value("truncate", true);
  config.rope.attention_factor = golden["attention_factor"];
  config.rope.short_factors = rope.value("short_factor", std::vector<double>());
  config.rope.long_factors = rope.value("long_factor", std::vector<double>());
  return config;
}

// Numbers that transformers wrote; see tests/oracles/rotary_reference.py.
TEST(RotaryTable, MatchesHuggingFaceForEveryKindOfScaling) {
  const Json cases = read_json(golden_path("models/rotary.json"));
  ASSERT_EQ(cases.size(), 12u);
  for (const Json& golden : cases) {
    for (const Json& shown : golden["tables"]) {
      const RotaryTable table(config_of(golden), shown["length"].get<int64_t>());
      for (size_t i = 0; i < shown["positions"].size(); ++i) {
        const auto expected = shown["rows"][i].get<std::vector<float>>();
        ASSERT_EQ(static_cast<size_t>(table.dims()), expected.size()) << golden["name"];
        const float* row = table.row(shown["positions"][i]);
        float difference = 0;
        for (size_t j = 0; j < expected.size(); ++j) difference = std::max(difference, std::abs(row[j] - expected[j]));
        EXPECT_LT(difference, 3e-7f) << golden["name"] << ", length " << shown["length"] << ", position "
                                     << shown["positions"][i];
      }
    }
  }
}

// Generation keeps rotated keys while a sample grows up to steady_positions().
TEST(RotaryTable, AnglesOfAShorterSampleAreAPrefixUpToSteadyPositions) {
  for (const RopeScaling scaling : {RopeScaling::kDynamic, RopeScaling::kLongrope, RopeScaling::kYarn}) {
    ModelConfig config;
    config.head_dim = 8;
    config.max_positions = 64;
    config.rope.scaling = scaling;
    config.rope.factor = 4.0;
    config.rope.original_positions = 16;
    config.rope.short_factors = {1, 1.1, 1.2, 1.3};
    config.rope.long_factors = {1, 2, 3, 4};
    const auto same = [&](int64_t first, int64_t second) {
      const RotaryTable a(config, first), b(config, second);
      return std::equal(a.row(0), a.row(std::min(first, second)), b.row(0));
    };
    EXPECT_TRUE(same(5, config.steady_positions()));
    EXPECT_EQ(same(5, config.steady_positions() + 1), scaling == RopeScaling::kYarn);
  }
}

TEST(RotaryTable, LearnedPositionsRotateNothing) {
  ModelConfig config;
  config.head_dim = 7;
  config.learned_positions = true;
  EXPECT_EQ(RotaryTable(config, 5).dims(), 0);
}

TEST(RotaryTable, OddNumberOfDimensionsIsABug) {
  ModelConfig config;
  config.head_dim = 7;
  EXPECT_THROW(RotaryTable(config, 5), InternalError);
}

}  // namespace
}  // namespace sluice::models::rotary_test
