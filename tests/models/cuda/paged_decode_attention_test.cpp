#include "models/cuda/paged_decode_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <string>

#include "models/cuda/own_kernels.h"
#include "models/portable/paged_attention.h"
#include "tests/models/devices.h"

namespace sluice::models::paged_decode_attention_test {
namespace {

struct Case {
  const char* name;
  int64_t heads, kv_heads, head_dim, block_size;
  AttentionScores scores;
};

// Heads of tensor cores and of none, some that the lanes of a warp share out evenly and some that they do not; every switch of
// the scores.
const Case kCases[] = {{"plain", 4, 4, 64, 16, {.scale = 0.125}},
                       {"grouped", 8, 2, 128, 32, {.scale = 0.1}},
                       {"small_head", 3, 1, 24, 16, {.scale = 0.4}},
                       {"largest_head", 2, 1, 256, 16, {.scale = 0.06}},
                       {"window", 4, 2, 32, 16, {.scale = 0.2, .window = 5}},
                       {"softcap", 4, 2, 32, 16, {.scale = 0.3, .softcap = 2}}};

class PagedDecodeAttention : public ::testing::TestWithParam<std::tuple<Case, at::ScalarType>> {};

TEST_P(PagedDecodeAttention, IsTheReferenceOnAGpu) {
  const auto device = devices::find("cuda:0");
  if (!device || own_kernels() == nullptr) GTEST_SKIP() << "this machine has no GPU, or the kernels were not built";
  const auto& [of, type] = GetParam();
  const std::vector<int64_t> positions{0, 1, 30, 77, of.block_size - 1};
  const int64_t sequences = static_cast<int64_t>(positions.size()), width = 77 / of.block_size + 1, blocks = 3 * width;
  const auto random = [&, type = type](at::IntArrayRef shape) { return at::randn(shape).to(*device, type); };
  const at::Tensor query = random({sequences, of.heads, of.head_dim});
  const at::Tensor keys = random({blocks, of.block_size, of.kv_heads, of.head_dim});
  const at::Tensor values = random({blocks, of.block_size, of.kv_heads, of.head_dim});
  const at::Tensor table = at::randint(blocks, {sequences, width}, at::kLong).to(*device);
  const at::Tensor at_place = at::tensor(positions, at::kLong).to(*device);
  const at::Tensor ours = paged_decode_attention(query, keys, values, table, at_place, of.scores);
  const at::Tensor theirs = portable::paged_attention(query.to(at::kFloat).unsqueeze(1), keys.to(at::kFloat),
                                                      values.to(at::kFloat), table, at_place.unsqueeze(1), of.scores)
                                .squeeze(1);
  EXPECT_EQ(ours.scalar_type(), type);
  EXPECT_LT(ours.to(at::kFloat).sub(theirs).abs().max().item().toDouble(), type == at::kFloat ? 1e-5 : 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Cases, PagedDecodeAttention,
                         ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + c10::toString(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace sluice::models::paged_decode_attention_test
