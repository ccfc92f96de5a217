#include "models/sample/packed_weights.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "models/memory/tensor_memory.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::packed_weights_test {
namespace {

constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kBfloat16};

// What product `linear` makes of a row that is 1 at `input` and 0 elsewhere: a column of its weights.
std::vector<float> column(const PackedMatrix& matrix, int64_t input) {
  std::vector<float> x(static_cast<size_t>(matrix.inputs()), 0.0f), out(static_cast<size_t>(matrix.outputs()));
  x[static_cast<size_t>(input)] = 1;
  std::vector<Bfloat16> narrow(x.size());
  for (size_t i = 0; i < x.size(); ++i) narrow[i] = to_bfloat16(x[i]);
  const bool wide = matrix.precision() == Precision::kFloat32;
  multiply(matrix, {.x = wide ? static_cast<const void*>(x.data()) : narrow.data(),
                    .x_stride = matrix.inputs(),
                    .rows = 1,
                    .out = out.data(),
                    .out_stride = matrix.outputs()});
  return out;
}

std::vector<float> values(const at::Tensor& tensor) {
  const at::Tensor row = tensor.to(at::kFloat).contiguous();
  return {row.const_data_ptr<float>(), row.const_data_ptr<float>() + row.numel()};
}

TEST(PackedWeights, ProductsThatReadTheSameRowsAreOneAndTheirOutputsBehindEachOther) {
  ModelConfig config = reference::small_config();
  config.qkv_bias = config.mlp_bias = true;
  const Weights weights = reference::random_weights(config);
  const LayerWeights& from = weights.layers[1];
  const LinearWeights &gate = from.feed_forward[Mlp::kGate], &up = from.feed_forward[Mlp::kUp];
  for (const Precision precision : kPrecisions) {
    const PackedWeights packed(weights, precision);
    const PackedLayer& layer = packed.layers()[1];
    const auto stored = [&](const at::Tensor& t) { return precision == Precision::kFloat32 ? t : t.to(at::kBFloat16); };
    EXPECT_EQ(column(layer.matrices.qkv.matrix, 5),
              values(stored(at::cat({from.query.weight, from.key.weight, from.value.weight}).select(1, 5))));
    EXPECT_EQ(column(layer.matrices.feed_forward[0].matrix, 5), values(stored(at::cat({gate.weight, up.weight}).select(1, 5))));
    EXPECT_EQ(column(layer.matrices.feed_forward[1].matrix, 5),
              values(stored(from.feed_forward[Mlp::kDown].weight.select(1, 5))));
    EXPECT_EQ(values(layer.matrices.qkv.bias), values(at::cat({from.query.bias, from.key.bias, from.value.bias})));
    EXPECT_EQ(values(layer.matrices.feed_forward[0].bias), values(at::cat({gate.bias, up.bias})));
  }
}

// The same table once more beside a tied head is what it would cost: half a gigabyte of a small model with a large vocabulary.
TEST(PackedWeights, ReadATiedEmbeddingOutOfTheHeadAndKeepAnUntiedOneInTheirPrecision) {
  for (const Precision precision : kPrecisions) {
    ModelConfig config = reference::small_config();
    config.vocab_size = 45;  // not whole panels
    const int64_t table = 45 * config.hidden_size * bytes_of(precision);
    const int64_t untied_bytes = PackedWeights(reference::random_weights(config), precision).bytes();
    config.tied_embeddings = true;
    EXPECT_EQ(PackedWeights(reference::random_weights(config), precision).bytes(), untied_bytes - table);
  }
}

TEST(PackedWeights, RowsOfTheEmbeddingAreRoundedToThePrecision) {
  for (const Precision precision : kPrecisions) {
    for (const bool tied : {false, true}) {
      ModelConfig config = reference::small_config();
      config.vocab_size = 45, config.tied_embeddings = tied;
      const Weights weights = reference::random_weights(config);
      const PackedWeights packed(weights, precision);
      std::vector<float> row(static_cast<size_t>(config.hidden_size));
      for (const int64_t token : {0, 31, 32, 44}) {
        packed.embedding_row(token, row.data());
        const at::Tensor of = weights.embedding.select(0, token);
        EXPECT_EQ(row, values(precision == Precision::kFloat32 ? of : of.to(at::kBFloat16))) << token << ", tied " << tied;
      }
      EXPECT_THROW(packed.embedding_row(45, row.data()), InternalError);
    }
  }
}

TEST(PackedWeights, OfOperandsThatWereRoundedBeforeAreTheSame) {
  for (const bool tied : {false, true}) {
    ModelConfig config = reference::small_config();
    config.tied_embeddings = tied;
    const Weights weights = reference::random_weights(config);
    const PackedWeights wide(weights, Precision::kBfloat16),
        narrow(reference::with_narrow_operands(weights), Precision::kBfloat16);
    EXPECT_EQ(narrow.bytes(), wide.bytes());
    std::vector<float> row(static_cast<size_t>(config.hidden_size)), expected = row;
    wide.embedding_row(3, expected.data());
    narrow.embedding_row(3, row.data());
    EXPECT_EQ(row, expected);
    EXPECT_EQ(column(narrow.head(), 5), column(wide.head(), 5));
    EXPECT_EQ(column(narrow.layers()[1].matrices.qkv.matrix, 5), column(wide.layers()[1].matrices.qkv.matrix, 5));
  }
}

TEST(PackedWeights, OfTiedEmbeddingsDoNotFitIntoThoseOfUntiedOnes) {
  ModelConfig config = reference::small_config();
  PackedWeights packed(reference::random_weights(config));
  config.tied_embeddings = true;
  EXPECT_THROW(packed.pack(reference::random_weights(config)), InternalError);
}

TEST(PackedWeights, AreACopyThatPackingAgainRenewsInPlace) {
  Weights weights = reference::random_weights(reference::small_config());
  PackedWeights packed(weights);
  const void* const memory = packed.layers()[0].matrices.feed_forward[1].matrix.panel(0);
  const std::vector<float> before = values(weights.layers[0].feed_forward[Mlp::kDown].weight.select(1, 2));
  weights.layers[0].feed_forward[Mlp::kDown].weight.mul_(2);
  EXPECT_EQ(column(packed.layers()[0].matrices.feed_forward[1].matrix, 2), before);
  packed.pack(weights);
  EXPECT_EQ(column(packed.layers()[0].matrices.feed_forward[1].matrix, 2),
            values(weights.layers[0].feed_forward[Mlp::kDown].weight.select(1, 2)));
  EXPECT_EQ(packed.layers()[0].matrices.feed_forward[1].matrix.panel(0), memory);
}

TEST(PackedWeights, TakeTheBytesThatThePlanIsTold) {
  for (const char* family : {"llama", "gpt2"})
    for (const Precision precision : kPrecisions)
      for (const bool tied : {false, true}) {
        ModelConfig config = reference::small_config();
        config.model_type = family;
        config.tied_embeddings = tied;
        if (std::string(family) == "gpt2") {
          config.norm = NormKind::kLayer, config.learned_positions = true, config.gated_mlp = false;
          config.qkv_bias = config.attention_output_bias = config.mlp_bias = true;
        }
        const Weights weights = reference::random_weights(config);
        int64_t live = 0;
        std::thread([&] {
          TensorMemory memory;
          memory.watch_this_thread();
          const PackedWeights packed(weights, precision);
          live = memory.live();
        }).join();
        EXPECT_EQ(live, PackedWeights::bytes_for(config, precision)) << family;
      }
}

TEST(PackedWeights, RefuseAModelWithoutALanguageModelHead) {
  Weights weights = reference::random_weights(reference::small_config());
  weights.head = at::Tensor();
  EXPECT_THROW(PackedWeights{weights}, InternalError);
}

}  // namespace
}  // namespace sluice::models::packed_weights_test
