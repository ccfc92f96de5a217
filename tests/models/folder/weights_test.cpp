#include "models/layers/weights.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <set>

#include "models/layers/weight_names.h"

namespace sluice::models::weights_test {
namespace {

// Every field of LayerWeights, and an MLP, in a model of no family.
TEST(Weights, OfNoFamilyAreNamedByTheirFieldsAndClonedWhole) {
  Weights weights;
  weights.layers.resize(2);
  for (LayerWeights& layer : weights.layers) layer.feed_forward.resize(3);
  const size_t tensors = sizeof(LayerWeights) - 4 * sizeof(LinearWeights) - sizeof(LayerWeights::network) -
                         sizeof(LayerWeights::feed_forward) - sizeof(LayerWeights::packed);
  const size_t vectors = tensors / sizeof(at::Tensor);
  EXPECT_EQ(weight_slots(weights).size(), 2 * (vectors + 7 * 2) + 6);  // seven linear layers with a bias each
  std::set<std::string> names;
  for (const auto& [name, tensor] : weight_slots(weights)) {
    EXPECT_TRUE(names.insert(name).second) << name;
    *tensor = at::full({2}, 1.0f);
  }
  const Weights copy = weights.clone();
  for (const auto& [name, tensor] : weights.named()) tensor.zero_();
  EXPECT_EQ(copy.named().size(), names.size());
  for (const auto& [name, tensor] : copy.named()) EXPECT_TRUE(tensor.eq(1.0).all().item<bool>()) << name;
}

TEST(Weights, PartsOfOneTensorHaveNamesOfTheirOwn) {
  Weights weights;
  weights.names_of = "gpt2";
  weights.layers.resize(1);
  weights.layers[0].key.weight = at::full({2}, 1.0f);
  ASSERT_EQ(weights.named().size(), 1u);
  EXPECT_EQ(weights.named()[0].first, "transformer.h.0.attn.c_attn.weight[key]");
}

}  // namespace
}  // namespace sluice::models::weights_test
