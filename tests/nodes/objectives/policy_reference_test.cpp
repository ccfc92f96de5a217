// Policy objectives against torch's autograd over the formulas of papers and other systems
// (tests/oracles/policy_loss_reference.py).
#include <gmock/gmock.h>

#include "base/json/json.h"
#include "tests/nodes/objectives/random_samples.h"
#include "tests/nodes/objectives/registered_objectives.h"
#include "tests/source_folder.h"

namespace sluice::nodes::policy_reference_test {
namespace {

using testing::RandomSample;
using testing::Vector;

const Json& policy_references() {
  static const Json file = read_json(std::filesystem::path(tests::source_folder()) / "tests/golden/nodes/policy_losses.json");
  return file;
}

std::vector<RandomSample> reference_samples() {
  const Json& columns = policy_references()["samples"];
  std::vector<RandomSample> samples(columns["logprobs"].size());
  const auto fill = [&](const char* name, Vector RandomSample::*member) {
    for (size_t i = 0; i < samples.size(); ++i) samples[i].*member = columns[name][i].get<Vector>();
  };
  fill("logprobs", &RandomSample::logprobs), fill("old_logprobs", &RandomSample::old_logprobs);
  fill("rollout_logprobs", &RandomSample::rollout_logprobs);
  fill("advantages", &RandomSample::advantages), fill("mask", &RandomSample::mask);
  return samples;
}

TEST(PolicyReference, LossAndGradientAreThoseOfTorch) {
  const std::vector<RandomSample> samples = reference_samples();
  for (const Json& entry : policy_references()["cases"]) {
    SCOPED_TRACE(entry["name"]);
    const auto objective = testing::made_objective<Objective>(entry["objective"], entry["keys"]);
    ASSERT_NE(objective, nullptr);
    const ObjectiveInputs inputs = testing::packed(samples, {0, 1, 2, 3});
    const ObjectiveResult result = objective->compute(inputs);
    result.loss_sum.div(result.count).backward();
    EXPECT_NEAR(testing::loss_of(result), entry["loss"].get<double>(), 1e-12);
    Vector expected;
    for (const Json& row : entry["gradient"]) expected.insert(expected.end(), row.begin(), row.end());
    testing::expect_near(testing::vector_of(inputs.logprobs.grad()), expected);
  }
}

}  // namespace
}  // namespace sluice::nodes::policy_reference_test
