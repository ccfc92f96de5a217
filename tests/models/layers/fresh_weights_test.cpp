#include "models/layers/fresh_weights.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/numbers/random.h"
#include "models/memory/tensor_memory.h"

namespace sluice::models::fresh_weights_test {
namespace {

// Numbers of some times as many as are drawn at once, and some more.
ExpectedWeight matrix() {
  return {.name = "model.embed_tokens.weight",
          .slot = nullptr,
          .shape = {1031, 1024},
          .kind = ExpectedWeight::Kind::kMatrix,
          .stored = {}};
}

TEST(FreshWeight, OfANarrowDtypeIsTheWideOneRounded) {
  const at::Tensor wide = fresh_weight(matrix(), {}, 7, at::kFloat);
  EXPECT_TRUE(fresh_weight(matrix(), {}, 7, at::kBFloat16).equal(wide.to(at::kBFloat16)));
  EXPECT_FALSE(wide.equal(fresh_weight(matrix(), {}, 8, at::kFloat)));
  EXPECT_FALSE(wide.narrow(0, 0, 500).equal(wide.narrow(0, 500, 500)));
}

// However many threads draw.
TEST(FreshWeight, HasTheNumbersOfItsStreamInOrder) {
  const at::Tensor weight = fresh_weight(matrix(), {}, 7, at::kFloat).flatten();
  RandomStream stream(7, stream_of_name(matrix().name));
  for (int64_t i = 0; i < weight.numel(); ++i)
    ASSERT_EQ(weight.const_data_ptr<float>()[i], static_cast<float>(ModelConfig{}.initializer_range * stream.normal())) << i;
}

TEST(FreshWeight, IsNeverThereTwice) {
  int64_t peak = 0;
  std::thread([&] {
    TensorMemory memory;
    memory.watch_this_thread();
    fresh_weight(matrix(), {}, 7, at::kBFloat16);
    peak = memory.take_peak();
  }).join();
  EXPECT_LT(peak, 2 * 1031 * 1024 + (2 << 20));
}

}  // namespace
}  // namespace sluice::models::fresh_weights_test
