#include "models/train/adamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json/json.h"
#include "models/kernels/parallel.h"
#include "tests/golden.h"

namespace sluice::models::adamw_test {
namespace {

at::Tensor tensor_of(const Json& numbers) { return at::tensor(numbers.get<std::vector<float>>()); }

void expect_near(const at::Tensor& actual, const Json& expected) {
  EXPECT_LT((actual.detach().flatten() - tensor_of(expected)).abs().max().item<float>(), 2e-6);
}

TEST(AdamW, FollowsTorchThroughClippedSteps) {
  const Json trace = read_json(golden_path("models/adamw.json"));
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
    matrix.mutable_grad().copy_(tensor_of(step["matrix_gradient"]).reshape({3, 5}));
    vector.mutable_grad().copy_(tensor_of(step["vector_gradient"]));
    EXPECT_NEAR(optimizer.step(step["scale"]), step["norm"].get<double>(), 1e-5);
    expect_near(matrix, step["matrix"]);
    expect_near(vector, step["vector"]);
  }
  EXPECT_EQ(optimizer.steps(), 3);
}

// tests/oracles/transformer_reference.py made it with torch.optim.AdamW and its parameter groups.
TEST(AdamW, GroupsFollowThoseOfTorch) {
  const Json trace = read_json(golden_path("models/adamw_groups.json"));
  const Json& options = trace["options"];
  AdamW::NamedTensors weights;
  for (const auto& [name, shape] : trace["shapes"].items())
    weights.emplace_back(name,
                         tensor_of(trace["begin"][name]).reshape(shape.get<std::vector<int64_t>>()).set_requires_grad(true));
  AdamWOptions given{.learning_rate = options["learning_rate"],
                     .beta1 = options["beta1"],
                     .beta2 = options["beta2"],
                     .eps = options["eps"],
                     .weight_decay = options["weight_decay"],
                     .clip_grad_norm = options["clip_grad_norm"]};
  for (const Json& group : trace["groups"]) {
    WeightGroupOptions& one = given.groups.emplace_back(WeightGroupOptions{.match = group["match"]});
    one.learning_rate_scale = group.value("learning_rate_scale", 1.0);
    if (group.contains("weight_decay")) one.weight_decay = group["weight_decay"].get<double>();
  }
  AdamW optimizer(weights, given);
  for (const Json& step : trace["steps"]) {
    for (const auto& [name, weight] : weights)
      weight.mutable_grad().copy_(tensor_of(step["gradients"][name]).reshape(weight.sizes()));
    optimizer.step(1.0);
    for (const auto& [name, weight] : weights) expect_near(weight, step["weights"][name]);
  }
}

TEST(AdamW, AGroupThatMatchesNothingIsNamedWithWhatItMayMean) {
  const at::Tensor weight = at::randn({4, 4}).set_requires_grad(true);
  const auto made = [&](const char* match) {
    AdamW({{"model.layers.0.weight", weight}}, {.groups = {{.match = match, .learning_rate_scale = 0.5}}});
  };
  EXPECT_NO_THROW(made("model.layers.*"));
  try {
    made("model.layer.*");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), "\"model.layer.*\" matches no weight of the model");
    EXPECT_EQ(error.help(), "did you mean \"model.layers.*\"?");
  }
}

// One weight, and an optimizer that has made one step on it.
struct Stepped {
  at::Tensor weight = at::randn({4, 4}).set_requires_grad(true);
  AdamW optimizer{{{"weight", weight}}, {.learning_rate = 0.1}};

  Stepped() { step(1.0f); }

  double step(float gradient) {
    weight.mutable_grad().fill_(gradient);
    return optimizer.step(1.0);
  }
};

TEST(AdamW, RestoredStateGoesOnBitForBit) {
  Stepped original, restored;
  restored.weight.detach().copy_(original.weight.detach());
  restored.step(3.0f);  // another history, which loading must forget
  restored.weight.detach().copy_(original.weight.detach());
  restored.optimizer.first_moments().copy_(original.optimizer.first_moments());
  restored.optimizer.second_moments().copy_(original.optimizer.second_moments());
  restored.optimizer.set_steps(original.optimizer.steps());
  original.step(-2.0f);
  restored.step(-2.0f);
  EXPECT_TRUE(original.weight.equal(restored.weight));
}

TEST(AdamW, GradientThatIsNotFiniteChangesNothing) {
  Stepped model;
  const at::Tensor before = model.weight.detach().clone();
  EXPECT_FALSE(std::isfinite(model.step(std::numeric_limits<float>::infinity())));
  EXPECT_TRUE(before.equal(model.weight));
  EXPECT_EQ(model.optimizer.steps(), 1);
  EXPECT_EQ(model.weight.grad().abs().sum().item<float>(), 0.0f);
}

TEST(AdamW, StepClearsTheGradients) {
  Stepped model;
  EXPECT_EQ(model.weight.grad().abs().sum().item<float>(), 0.0f);
}

// Two steps on a matrix of several blocks and a vector, with some number of threads.
struct Threaded {
  at::Tensor matrix, vector;
  std::vector<double> norms;

  Threaded(int threads, const at::Tensor& values, const at::Tensor& gradient)
      : matrix(values.clone().set_requires_grad(true)), vector(values[0].clone().set_requires_grad(true)) {
    const int64_t before = loop_threads();
    set_loop_threads(threads);
    AdamW optimizer({{"matrix", matrix}, {"vector", vector}}, {.learning_rate = 0.1, .weight_decay = 0.1, .clip_grad_norm = 1.0});
    for (int step = 0; step < 2; ++step) {
      matrix.mutable_grad().copy_(gradient);
      vector.mutable_grad().copy_(gradient[1]);
      norms.push_back(optimizer.step(0.5));
    }
    set_loop_threads(before);
  }
};

TEST(AdamW, AnyNumberOfThreadsGivesTheSameBits) {
  const at::Tensor values = at::randn({300, 1000}), gradient = at::randn({300, 1000});
  const Threaded one(1, values, gradient), three(3, values, gradient);
  EXPECT_EQ(one.norms, three.norms);
  EXPECT_TRUE(one.matrix.equal(three.matrix));
  EXPECT_TRUE(one.vector.equal(three.vector));
}

TEST(AdamW, TheNormIsThatOfAllGradientsTogether) {
  const at::Tensor matrix = at::randn({30, 1001}).set_requires_grad(true), vector = at::randn({7}).set_requires_grad(true);
  AdamW optimizer({{"matrix", matrix}, {"vector", vector}}, {});
  matrix.mutable_grad().copy_(at::randn({30, 1001}));
  vector.mutable_grad().fill_(3.0);
  const double exact = std::hypot(matrix.grad().to(at::kDouble).norm().item<double>(), 3 * std::sqrt(7.0));
  EXPECT_NEAR(optimizer.gradient_norm(-0.5), 0.5 * exact, 1e-9);
}

}  // namespace
}  // namespace sluice::models::adamw_test
