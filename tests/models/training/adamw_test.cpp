#include "models/training/adamw.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "tests/temporary_folder.h"

namespace sluice::models {
namespace {

using testing::HasSubstr;

at::Tensor tensor_of(const Json& numbers) { return at::tensor(numbers.get<std::vector<float>>()); }

void expect_near(const at::Tensor& actual, const Json& expected) {
  EXPECT_LT((actual.detach().flatten() - tensor_of(expected)).abs().max().item<float>(), 2e-6);
}

TEST(AdamW, FollowsTorchThroughClippedSteps) {
  const Json trace = read_json(std::string(SLUICE_SOURCE_DIR) + "/tests/golden/models/adamw.json");
  const Json& options = trace["options"];
  const at::Tensor matrix = tensor_of(trace["matrix"]).reshape({3, 5}).set_requires_grad(true);
  const at::Tensor vector = tensor_of(trace["vector"]).set_requires_grad(true);
  AdamW optimizer({{"matrix", matrix}, {"vector", vector}}, {.learning_rate = options["learning_rate"],
                                                             .beta1 = options["beta1"],
                                                             .beta2 = options["beta2"],
                                                             .eps = options["eps"],
                                                             .weight_decay = options["weight_decay"],
                                                             .clip_grad_norm = options["clip_grad_norm"]});
  for (const Json& step : trace["steps"]) {
    matrix.mutable_grad() = tensor_of(step["matrix_gradient"]).reshape({3, 5});
    vector.mutable_grad() = tensor_of(step["vector_gradient"]);
    EXPECT_NEAR(optimizer.step(step["scale"]), step["norm"].get<double>(), 1e-5);
    expect_near(matrix, step["matrix"]);
    expect_near(vector, step["vector"]);
  }
  EXPECT_EQ(optimizer.steps(), 3);
}

// One weight, and an optimizer that has made one step on it.
struct Stepped {
  at::Tensor weight = at::randn({4, 4}).set_requires_grad(true);
  AdamW optimizer{{{"weight", weight}}, {.learning_rate = 0.1}};

  Stepped() { step(1.0f); }

  double step(float gradient) {
    weight.mutable_grad() = at::full({4, 4}, gradient);
    return optimizer.step(1.0);
  }
};

TEST(AdamW, RestoredStateGoesOnBitForBit) {
  Stepped original, restored;
  restored.weight.detach().copy_(original.weight.detach());
  restored.step(3.0f);  // another history, which loading must forget
  restored.weight.detach().copy_(original.weight.detach());
  restored.optimizer.load_state(original.optimizer.state(), original.optimizer.steps());
  original.step(-2.0f);
  restored.step(-2.0f);
  EXPECT_TRUE(original.weight.equal(restored.weight));
}

TEST(AdamW, StateOfAnotherModelIsRefused) {
  Stepped model;
  EXPECT_THAT(message_of<UserError>([&] { model.optimizer.load_state({}, 1); }), HasSubstr("\"exp_avg.weight\" is missing"));
  const AdamW::NamedTensors wrong{{"exp_avg.weight", at::randn({2})}, {"exp_avg_sq.weight", at::randn({2})}};
  EXPECT_THAT(message_of<UserError>([&] { model.optimizer.load_state(wrong, 1); }),
              HasSubstr("has shape [2]; the model's is [4, 4]"));
}

TEST(AdamW, GradientThatIsNotFiniteChangesNothing) {
  Stepped model;
  const at::Tensor before = model.weight.detach().clone();
  EXPECT_FALSE(std::isfinite(model.step(std::numeric_limits<float>::infinity())));
  EXPECT_TRUE(before.equal(model.weight));
  EXPECT_EQ(model.optimizer.steps(), 1);
  EXPECT_FALSE(model.weight.grad().defined());
}

TEST(AdamW, StepClearsTheGradients) {
  Stepped model;
  EXPECT_FALSE(model.weight.grad().defined());
}

TEST(GradientNorm, AnyNumberOfThreadsGivesTheSameBits) {
  const at::Tensor weight = at::randn({300, 1000}).set_requires_grad(true);
  weight.mutable_grad() = at::randn({300, 1000});
  const std::vector<at::Tensor> weights{weight};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double one = gradient_norm(weights, 0.5);
  at::set_num_threads(3);
  const double three = gradient_norm(weights, 0.5);
  at::set_num_threads(before);
  EXPECT_EQ(one, three);
  EXPECT_NEAR(one, 0.5 * weight.grad().to(at::kDouble).norm().item<double>(), 1e-6);
}

}  // namespace
}  // namespace sluice::models
