#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/silu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/json.h"
#include "models/adapters/lora.h"
#include "models/folder/folder.h"
#include "models/folder/safetensors.h"
#include "models/forward/action_logprobs.h"
#include "models/portable/hidden_states.h"
#include "models/sample/generation.h"
#include "models/train/adamw.h"
#include "tests/models/activation_peak.h"
#include "tests/models/dense_reference.h"
#include "tests/models/layers/summed_mlps.h"
#include "tests/temporary_folder.h"

// A kind of feed-forward network that the engine does not know, from its file to its samples.
namespace sluice::models::feed_forward_kind_test {
namespace {

// All that says who has it: one family with norms in front alone, one with norms on both sides, as Gemma 2 has them.
constexpr Family kFamilies[] = {
    {.model_type = "summed",
     .language_class = "SummedForCausalLM",
     .value_class = "SummedForSequenceClassification",
     .defaults = {.max_positions = 2048},
     .weights_like = "llama",
     .feed_forward = &kSummedMlps},
    {.model_type = "summed_both",
     .language_class = "SummedBothForCausalLM",
     .value_class = "SummedBothForSequenceClassification",
     .defaults = {.max_positions = 2048},
     .norm = NormKind::kRmsFromOne,
     .norm_place = NormPlace::kBoth,
     .weights_like = "gemma2",
     .feed_forward = &kSummedMlps},
};

class KindOfFeedForward : public ::testing::TestWithParam<const char*> {
 protected:
  KindOfFeedForward() {
    const Json config = {{"model_type", GetParam()}, {"vocab_size", 37},         {"hidden_size", 96},
                         {"intermediate_size", 160}, {"num_hidden_layers", 2},   {"num_attention_heads", 4},
                         {"num_key_value_heads", 2}, {"initializer_range", 0.15}};
    folder_.write("config.json", config.dump());
  }

  Transformer fresh(Compute compute = {}, bool trainable = false) const {
    return load_transformer(folder_.path(),
                            {.random_init = true, .seed = 3, .trainable = trainable, .compute = compute, .families = kFamilies});
  }

  std::vector<int64_t> tokens(int64_t count) const {
    const at::Tensor ids = at::randint(37, {count}, at::kLong);
    return {ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + count};
  }

  TemporaryFolder folder_;
};

at::Tensor ids_of(const std::vector<int64_t>& tokens) {
  return at::from_blob(const_cast<int64_t*>(tokens.data()), {static_cast<int64_t>(tokens.size())}, at::kLong).clone();
}

at::Tensor hidden_of(const Transformer& model, const std::vector<int64_t>& tokens) {
  return model.hidden_states(ids_of(tokens), std::vector<int64_t>{0, static_cast<int64_t>(tokens.size())});
}

// Log-probability of every token but the first.
at::Tensor logprobs_of(const Transformer& model, const std::vector<int64_t>& tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  return action_logprobs(hidden_of(model, tokens).narrow(0, 0, count - 1), model.weights().head,
                         ids_of(tokens).narrow(0, 1, count - 1).contiguous(), {.precision = model.compute().precision});
}

// The same model out of ATen's operators.
at::Tensor dense_hidden(const ModelConfig& c, const Weights& weights, const std::vector<int64_t>& tokens) {
  at::Tensor x = at::embedding(weights.embedding, ids_of(tokens));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights& layer = weights.layers[i];
    x = x + reference::attended(c, layer, static_cast<int64_t>(i), x);
    const at::Tensor in = reference::norm(c, x, layer.feed_forward_norm);
    const auto mlp = [&](size_t first) {
      const auto matrix = [&](size_t place) { return layer.feed_forward[first + place].weight; };
      return at::linear(at::silu(at::linear(in, matrix(0))) * at::linear(in, matrix(1)), matrix(2));
    };
    const at::Tensor out = mlp(0) + mlp(3);
    x = x + (c.norm_place == NormPlace::kBefore ? out : reference::norm(c, out, layer.feed_forward_output_norm));
  }
  return reference::norm(c, x, weights.final_norm);
}

TEST_P(KindOfFeedForward, IsSavedUnderItsOwnNamesAndLoadedAgain) {
  const Transformer model = fresh();
  write_folder(model, folder_.path(), folder_.path() / "saved", {});
  const TensorFolder file(folder_.path() / "saved");
  const LayerWeights& layer = model.weights().layers[1];
  EXPECT_TRUE(file.read("model.layers.1.mlp.left.gate_proj.weight", {160, 96}).equal(layer.feed_forward[0].weight));
  EXPECT_TRUE(file.read("model.layers.1.mlp.right.up_proj.weight", {160, 96}).equal(layer.feed_forward[4].weight));
  const Transformer again = load_transformer(folder_.path() / "saved", {.families = kFamilies});
  const auto before = model.weights().named(), after = again.weights().named();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(before[i].second.equal(after[i].second)) << before[i].first;
}

TEST_P(KindOfFeedForward, ComputesAndDifferentiatesWhatAutogradDoes) {
  Transformer model = fresh({}, true);
  const Weights copy = model.weights().clone();
  for (const auto& [name, tensor] : copy.named()) tensor.set_requires_grad(true);
  const std::vector<int64_t> text = tokens(30);
  const at::Tensor ours = hidden_of(model, text), theirs = dense_hidden(model.config(), copy, text);
  EXPECT_LT((ours - theirs).abs().max().item<float>(), 1e-4);
  const at::Tensor slope = at::randn_like(theirs);
  ours.backward(slope), theirs.backward(slope);
  const auto of_ours = model.weights().named(), of_theirs = copy.named();
  for (size_t i = 0; i < of_ours.size(); ++i) {
    if (!of_theirs[i].second.grad().defined()) continue;  // the head
    const at::Tensor expected = of_theirs[i].second.grad();
    EXPECT_LT((of_ours[i].second.grad() - expected).abs().max().item<float>(), 2e-4 * (1 + expected.abs().max().item<float>()))
        << of_ours[i].first;
  }
}

TEST_P(KindOfFeedForward, IsComputedInLibTorchsOperators) {
  const at::NoGradGuard no_gradient;
  const Transformer model = fresh();
  const std::vector<int64_t> text = tokens(30), offsets{0, 12, 30};
  const at::Tensor ours = model.hidden_states(ids_of(text), offsets);
  const at::Tensor theirs = portable::hidden_states(model.config(), model.weights(), ids_of(text), offsets);
  EXPECT_LT((ours - theirs).abs().max().item<float>(), 1e-4);
}

TEST_P(KindOfFeedForward, LearnsAText) {
  Transformer model = fresh({}, true);
  AdamW optimizer(model.weights().trainable(), {.learning_rate = 0.01});
  const std::vector<int64_t> text = tokens(40);
  double first = 0, last = 0;
  for (int step = 0; step < 8; ++step) {
    const at::Tensor loss = logprobs_of(model, text).mean().neg();
    (step == 0 ? first : last) = loss.item<double>();
    loss.backward();
    optimizer.step(1.0);
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST_P(KindOfFeedForward, LearnsThroughAdaptersOfItsMatrices) {
  Transformer model = fresh();
  add_adapters(model.weights(), {.rank = 4, .alpha = 8, .targets = {"right.up_proj"}}, 1);
  EXPECT_EQ(model.weights().trainable().size(), 2u * 2);  // layers, factors
  hidden_of(model, tokens(20)).sum().backward();
  EXPECT_GT(model.weights().layers[0].feed_forward[4].adapter.b.grad().abs().max().item<float>(), 0);
}

TEST_P(KindOfFeedForward, SamplesWithTheLogProbabilitiesOfTraining) {
  const at::NoGradGuard no_gradient;
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Transformer model = fresh({precision});
    const PackedWeights packed(model.weights(), precision);
    EXPECT_EQ(packed.bytes(), PackedWeights::bytes_for(model.config(), precision));
    GenerationEngine engine(model.config(), {.sampling = {.temperature = 1}, .precision = precision},
                            {.max_running_samples = 2, .max_step_tokens = 16, .kv_block_size = 16, .kv_blocks = 16});
    const std::vector<int64_t> prompt = tokens(21);
    engine.submit({.id = 1, .prompt = prompt, .max_new_tokens = 40, .stream = RandomStream(9, 1, 0, 1)});
    std::vector<SampleResult> results;
    while (!engine.idle()) {
      for (SampleResult& result : engine.step(packed)) results.push_back(std::move(result));
    }
    ASSERT_EQ(results.size(), 1u);
    std::vector<int64_t> text = prompt;
    text.insert(text.end(), results[0].tokens.begin(), results[0].tokens.end());
    const at::Tensor trained = logprobs_of(model, text).slice(0, 20);
    const at::Tensor sampled = at::from_blob(results[0].logprobs.data(), {40}, at::kFloat);
    const at::Tensor difference = (sampled - trained).abs();
    const bool rounds = precision == Precision::kBfloat16;
    EXPECT_LT(difference.max().item<float>(), rounds ? 6e-2 : 1e-4);
    EXPECT_LT(difference.mean().item<float>(), rounds ? 1.5e-2 : 1e-5);
  }
}

TEST_P(KindOfFeedForward, TakesTheActivationBytesThatArePredicted) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const auto checkpointing : {ActivationCheckpointing::kNone, ActivationCheckpointing::kLayer}) {
      Transformer model = fresh({precision, checkpointing});
      for (const bool training : {false, true}) {
        const ActivationPeak peak = activation_peak_of(model, 1500, training);
        EXPECT_GE(peak.predicted, peak.measured) << training;
        EXPECT_LE(static_cast<double>(peak.predicted), 1.2 * static_cast<double>(peak.measured)) << training;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, KindOfFeedForward, ::testing::Values("summed", "summed_both"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::models::feed_forward_kind_test
