#include "models/sample/load_packed.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "models/kernels/quantised_rows.h"
#include "models/memory/tensor_memory.h"
#include "tests/models/golden_models.h"
#include "tests/temporary_folder.h"

namespace sluice::models::load_packed_test {
namespace {

void expect_same(const at::Tensor& ours, const at::Tensor& theirs) {
  ASSERT_EQ(ours.defined(), theirs.defined());
  if (ours.defined()) EXPECT_TRUE(ours.equal(theirs));
}

void expect_same(const PackedMatrix& ours, const PackedMatrix& theirs) {
  ASSERT_EQ(ours.outputs(), theirs.outputs());
  std::vector<float> one(static_cast<size_t>(ours.inputs())), other = one;
  for (int64_t output = 0; output < ours.outputs(); ++output) {
    ours.row(output, one.data());
    theirs.row(output, other.data());
    ASSERT_EQ(one, other) << output;
  }
}

void expect_same(const PackedWeights& ours, const PackedWeights& theirs) {
  EXPECT_EQ(ours.bytes(), theirs.bytes());
  expect_same(ours.positions(), theirs.positions());
  expect_same(ours.final_norm(), theirs.final_norm());
  expect_same(ours.final_norm_bias(), theirs.final_norm_bias());
  expect_same(ours.head(), theirs.head());
  std::vector<float> one(static_cast<size_t>(ours.head().inputs())), other = one;
  ours.embedding_row(3, one.data());
  theirs.embedding_row(3, other.data());
  EXPECT_EQ(one, other);
  ASSERT_EQ(ours.layers().size(), theirs.layers().size());
  for (size_t i = 0; i < ours.layers().size(); ++i) {
    const PackedLayer &layer = ours.layers()[i], &as = theirs.layers()[i];
    expect_same(layer.attention_norm, as.attention_norm);
    expect_same(layer.feed_forward_norm, as.feed_forward_norm);
    expect_same(layer.matrices.qkv.matrix, as.matrices.qkv.matrix);
    expect_same(layer.matrices.qkv.bias, as.matrices.qkv.bias);
    expect_same(layer.matrices.attention_output.matrix, as.matrices.attention_output.matrix);
    for (size_t part = 0; part < as.matrices.feed_forward.size(); ++part)
      expect_same(layer.matrices.feed_forward[part].matrix, as.matrices.feed_forward[part].matrix);
  }
}

TEST(LoadPacked, IsTheModelPacked) {
  for (const char* name : {"llama_tied", "llama_mqa_biases", "gpt2", "gemma2", "phi3_su"}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      const LoadOptions options{.compute = {precision}, .narrow_operands = true};
      const PackedModel packed = load_packed(golden_model(name), options);
      const Transformer whole = load_transformer(golden_model(name), options);
      expect_same(packed.weights, PackedWeights(whole.weights(), precision));
      EXPECT_EQ(packed.config.layers, whole.config().layers);
    }
  }
}

TEST(LoadPacked, SharesQuantisedMatricesAndTakesBesideThemWhatIsPredicted) {
  const QuantisationOptions options{Quantisation::kInt4, 32};
  for (const char* name : {"llama_tied", "gpt2", "gemma2", "qwen2_moe"}) {
    const PackedModel packed =
        load_packed(golden_model(name), {.compute = {Precision::kBfloat16}, .quantisation = options, .narrow_operands = true});
    EXPECT_EQ(packed.weights.bytes(), PackedWeights::bytes_for(packed.config, Precision::kBfloat16, {}, true)) << name;
    Weights shapes;
    int64_t shared = 0;
    for (const ExpectedWeight& weight : expected_weights(packed.config, Head::kLanguageModel, shapes))
      if (weight.quantises) shared += quantised_bytes(options, weight.shape[0], weight.shape[1]);
    EXPECT_EQ(packed.weights.shared_bytes(), shared) << name;
  }
}

// Twelve layers, of which one is an eighteenth of the whole.
TEST(LoadPacked, HoldsBesideWhatIsPackedNoMoreThanALayerOrATable) {
  constexpr int64_t kVocabulary = 512, kHidden = 64, kInner = 256;
  constexpr int64_t kLayer = 2 * (4 * kHidden * kHidden + 3 * kInner * kHidden) + 4 * 2 * kHidden;
  constexpr int64_t kDrawn = 4 * kVocabulary * kHidden, kSlack = 1 << 14;  // of a random matrix
  for (const bool tied : {false, true}) {
    const TemporaryFolder folder;
    const Json config = {{"model_type", "llama"},       {"vocab_size", kVocabulary}, {"hidden_size", kHidden},
                         {"intermediate_size", kInner}, {"num_hidden_layers", 12},   {"num_attention_heads", 4},
                         {"tie_word_embeddings", tied}};
    std::ofstream(folder.path() / "config.json") << config.dump();
    const LoadOptions options{.random_init = true, .compute = {Precision::kBfloat16}, .narrow_operands = true};
    int64_t peak = 0, live = 0;
    std::thread([&] {
      TensorMemory memory;
      memory.watch_this_thread();
      const PackedModel packed = load_packed(folder.path(), options);
      live = memory.live(), peak = memory.take_peak();
    }).join();
    EXPECT_GT(live, 12 * kLayer);
    EXPECT_LE(peak, live + kLayer + kDrawn + kSlack) << "tied " << tied;
  }
}

TEST(LoadPacked, RefusesAModelWithoutALanguageModelHead) {
  for (const char* name : {"llama_gqa", "llama_tied"})
    EXPECT_THROW(load_packed(golden_model(name), {.head = Head::kValue}), InternalError) << name;
}

}  // namespace
}  // namespace sluice::models::load_packed_test
