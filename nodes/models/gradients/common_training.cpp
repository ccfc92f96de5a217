#include "nodes/models/gradients/common_training.h"

#include <ATen/ops/from_blob.h>

#include <memory>

namespace sluice::nodes {

CommonTraining common_training(const std::string& model, const at::Tensor& trained, engine::CommonMemory& memory) {
  const int64_t floats = trained.numel();
  auto sums = std::make_shared<models::FixedPointSums>(
      memory.get(model + "/gradients", models::FixedPointSums::bytes_for(floats)), floats);
  if (memory.ranks().place == 0) sums->set_up();
  const auto copy = memory.get(model + "/copy", static_cast<size_t>(floats) * sizeof(float));
  return {.parameters = {.weights = trained, .sums = std::move(sums)},
          .copy = at::from_blob(
              copy.get(), {floats}, [copy](void*) {}, at::TensorOptions(at::kFloat)),
          .memory = &memory};
}

}  // namespace sluice::nodes
