// config.json as folders that people use have it: every key that is there is understood, and means what it should.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json/json.h"
#include "models/config/config.h"
#include "models/layers/weight_names.h"
#include "tests/golden.h"
#include "tests/temporary_folder.h"

namespace sluice::models::published_configs_test {
namespace {

int64_t parameters_of(const ModelConfig& config) {
  Weights shapes_only;
  int64_t total = 0;
  for (const ExpectedWeight& weight : expected_weights(config, Head::kLanguageModel, shapes_only)) {
    int64_t count = 1;
    for (const int64_t size : weight.shape) count *= size;
    total += count;
  }
  return total;
}

TEST(PublishedConfigs, AreUnderstood) {
  const Json all = read_json(golden_path("models/published_configs.json"));
  ASSERT_GE(all.size(), 17u);
  const TemporaryFolder folder;
  for (const auto& [name, entry] : all.items()) {
    SCOPED_TRACE(name);
    folder.write("config.json", entry["config"].dump());
    const ModelConfig config = read_config(folder.path());
    const Json& expect = entry["expect"];
    EXPECT_EQ(config.head_dim, expect["head_dim"]);
    EXPECT_EQ(config.kv_heads, expect["kv_heads"]);
    EXPECT_EQ(config.steady_positions(), expect["steady_positions"]);
    EXPECT_EQ(std::ranges::count_if(config.windows, [](int64_t window) { return window > 0; }), expect["windowed_layers"]);
    if (!expect.contains("parameters")) continue;  // as transformers counts them
    EXPECT_EQ(parameters_of(config), expect["parameters"]);
    EXPECT_EQ(parameters_of(config) - config.idle_parameters(), expect["active_parameters"]);
  }
}

}  // namespace
}  // namespace sluice::models::published_configs_test
