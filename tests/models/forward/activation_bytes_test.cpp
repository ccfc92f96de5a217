#include "models/forward/activation_bytes.h"

#include <gtest/gtest.h>

#include "tests/models/activation_peak.h"
#include "tests/models/dense_reference.h"

// What is predicted against what LibTorch reports, for every switch of a config.
namespace sluice::models::activation_bytes_test {
namespace {

struct Case {
  const char* name;
  bool training = false;
  Compute compute;
};

class ActivationBytesOfSwitches : public ::testing::TestWithParam<Case> {};

TEST_P(ActivationBytesOfSwitches, AreAnUpperBoundThatIsNearlyReached) {
  for (const auto& [name, small] : reference::configs_of_every_switch()) {
    for (const int64_t width : {1, 4}) {
      ModelConfig config = small;
      config.hidden_size *= 4, config.intermediate_size *= 4 * width, config.head_dim *= 4, config.rope.dims *= 4;
      config.max_positions = 2000, config.rope.scaling = RopeScaling::kNone;
      Transformer model(config, reference::random_weights(config, 0.05), GetParam().compute);
      for (const int64_t tokens : {100, 1500}) {
        const ActivationPeak peak = activation_peak_of(model, tokens, GetParam().training);
        const std::string what = std::string(name) + ", " + std::to_string(width) + ", " + std::to_string(tokens);
        EXPECT_GE(peak.predicted, peak.measured) << what;
        EXPECT_LE(static_cast<double>(peak.predicted), 1.2 * static_cast<double>(peak.measured)) << what;
      }
    }
  }
}

constexpr auto kNarrow = Precision::kBfloat16;
constexpr auto kLayer = ActivationCheckpointing::kLayer;
INSTANTIATE_TEST_SUITE_P(Passes, ActivationBytesOfSwitches,
                         ::testing::Values(Case{"Forward"}, Case{"ForwardInBfloat16", false, {kNarrow}}, Case{"Training", true},
                                           Case{"TrainingInBfloat16", true, {kNarrow}},
                                           Case{"TrainingWithCheckpoints", true, {Precision::kFloat32, kLayer}},
                                           Case{"TrainingInBfloat16WithCheckpoints", true, {kNarrow, kLayer}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::models::activation_bytes_test
