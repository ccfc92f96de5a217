#include "models/adapters/lora.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/layers/adapter_products.h"
#include "models/train/adamw.h"
#include "tests/models/dense_reference.h"
#include "tests/temporary_folder.h"

namespace sluice::models::lora_test {
namespace {

using ::testing::HasSubstr;

const std::vector<int64_t> kOffsets{0, 21, 22, 30};

// A random model with random adapters on `targets`, and some tokens.
struct Adapted {
  Transformer model;
  at::Tensor tokens;

  explicit Adapted(const ModelConfig& config, const std::vector<std::string>& targets = {kAllLinear})
      : model(config, reference::random_weights(config, 0.2)), tokens(at::randint(config.vocab_size, {30}, at::kLong)) {
    add_adapters(model.weights(), {.rank = 3, .alpha = 6, .targets = targets}, 7);
    for (const AdaptableMatrix& matrix : adaptable_matrices(model.weights())) {
      if (matrix.adapter->defined()) matrix.adapter->b.detach().normal_(0, 0.1);
    }
  }

  at::Tensor logits(const Weights& weights) const {
    const Transformer other(model.config(), weights);
    return at::matmul(other.hidden_states(tokens, kOffsets), weights.head.t());
  }
};

// The dense oracle knows no adapters: it gets W + scale b a in place of W, differentiable in both factors.
Weights dense_sums(const Weights& weights) {
  Weights sums = without_adapters(weights);
  Weights handles = weights;
  std::vector<at::Tensor> merged;
  for (const AdaptableMatrix& matrix : adaptable_matrices(handles)) {
    const Adapter& adapter = *matrix.adapter;
    merged.push_back(adapter.defined() ? *matrix.weight + at::matmul(adapter.b, adapter.a) * adapter.scale : *matrix.weight);
  }
  size_t next = 0;
  for (const AdaptableMatrix& matrix : adaptable_matrices(sums)) *matrix.weight = merged[next++];
  return sums;
}

at::Tensor dense_logits(const Adapted& adapted) {
  const Weights sums = dense_sums(adapted.model.weights());
  const auto* tokens = adapted.tokens.const_data_ptr<int64_t>();
  std::vector<at::Tensor> all;
  for (size_t s = 0; s + 1 < kOffsets.size(); ++s) {
    all.push_back(reference::logits(adapted.model.config(), sums, {tokens + kOffsets[s], tokens + kOffsets[s + 1]}));
  }
  return at::cat(all);
}

class LoraSwitches : public ::testing::TestWithParam<reference::NamedConfig> {};

TEST_P(LoraSwitches, GradientsOfTheFactorsMatchTheDenseModel) {
  ModelConfig config = GetParam().config;
  config.logit_softcap = 0;  // after the adapters, and not in logits()
  const Adapted adapted(config);
  const at::Tensor ours = adapted.logits(adapted.model.weights()), theirs = dense_logits(adapted);
  const double size = theirs.abs().max().item<double>();
  EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-4 * size);

  const auto gradients = [&](const at::Tensor& logits) {
    logits.mul(logits).sum().backward();
    std::vector<at::Tensor> result;
    for (const auto& [name, weight] : adapted.model.weights().trainable()) {
      result.push_back(weight.grad().clone());
      weight.mutable_grad().reset();
    }
    return result;
  };
  const auto of_ours = gradients(ours), of_theirs = gradients(theirs);
  ASSERT_GT(of_ours.size(), 0u);
  for (size_t i = 0; i < of_ours.size(); ++i) {
    EXPECT_LT((of_ours[i] - of_theirs[i]).norm().item<double>(), 2e-4 * of_theirs[i].norm().item<double>() + 1e-4)
        << adapted.model.weights().trainable()[i].first;
  }
}

TEST_P(LoraSwitches, MergedModelComputesTheSame) {
  const at::NoGradGuard no_gradient;
  const Adapted adapted(GetParam().config);
  Weights merged = without_adapters(adapted.model.weights()), handles = adapted.model.weights();
  std::vector<at::Tensor> matrices;
  for (const AdaptableMatrix& matrix : adaptable_matrices(handles))
    matrices.push_back(merged_matrix(*matrix.weight, *matrix.adapter));
  size_t next = 0;
  for (const AdaptableMatrix& matrix : adaptable_matrices(merged)) *matrix.weight = matrices[next++];
  const at::Tensor plain = adapted.logits(adapted.model.weights());
  EXPECT_LT((plain - adapted.logits(merged)).abs().max().item<double>(), 1e-5 * std::max(1.0, plain.abs().max().item<double>()));
}

// The base in 2 bytes a parameter trains as one in 4 does.
TEST_P(LoraSwitches, ABaseThatWasRoundedBeforeGivesTheSameBits) {
  const Adapted adapted(GetParam().config);
  const auto trained = [&](const Weights& weights) {
    const Transformer model(adapted.model.config(), weights, {Precision::kBfloat16});
    const at::Tensor states = model.hidden_states(adapted.tokens, kOffsets);
    const at::Tensor logprobs = action_logprobs(states, weights.head, adapted.tokens, {.precision = Precision::kBfloat16});
    logprobs.sum().backward();
    std::vector<at::Tensor> all{logprobs.detach()};
    for (const auto& [name, factor] : weights.trainable()) {
      all.push_back(factor.grad().clone());
      factor.mutable_grad().reset();
    }
    return all;
  };
  const auto wide = trained(adapted.model.weights()), narrow = trained(reference::with_narrow_operands(adapted.model.weights()));
  ASSERT_EQ(narrow.size(), wide.size());
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_TRUE(narrow[i].equal(wide[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Configs, LoraSwitches, ::testing::ValuesIn(reference::configs_of_every_switch()),
                         [](const auto& info) { return std::string(info.param.name); });

// More than is merged at a time, in rows that are not whole panels at the end.
TEST(Lora, AMatrixIsMergedInRangesOfRows) {
  const at::Tensor weight = at::randn({5001, 1024}).to(at::kBFloat16);
  const Adapter adapter{.a = at::randn({2, 1024}), .b = at::randn({5001, 2}), .scale = 0.5};
  for (const Adapter& of : {adapter, Adapter()}) {
    std::vector<at::Tensor> ranges;
    int64_t next = 0;
    for_each_merged_rows(weight, of, [&](int64_t first, const at::Tensor& rows) {
      EXPECT_EQ(first, next);
      EXPECT_LE(rows.numel(), int64_t{1} << 22);
      next += rows.size(0);
      ranges.push_back(rows.clone());
    });
    EXPECT_GT(ranges.size(), 1u);
    EXPECT_TRUE(at::cat(ranges).equal(merged_matrix(weight, of)));
  }
  EXPECT_EQ(merged_matrix(weight, adapter).scalar_type(), at::kFloat);
}

TEST(Lora, AFreshAdapterChangesNothing) {
  const at::NoGradGuard no_gradient;
  Adapted adapted(reference::small_config());
  const at::Tensor before = adapted.logits(without_adapters(adapted.model.weights()));
  add_adapters(adapted.model.weights(), {.rank = 4, .alpha = 8, .targets = {kAllLinear}}, 1);
  EXPECT_TRUE(adapted.logits(adapted.model.weights()).equal(before));
}

TEST(Lora, FirstFactorsAreUniformAndDependOnSeedAndName) {
  const ModelConfig config = reference::small_config();
  Weights one = reference::random_weights(config, 0.2), same = one.clone(), other = one.clone();
  add_adapters(one, {.rank = 8, .targets = {"query", "key"}}, 1);
  add_adapters(same, {.rank = 8, .targets = {"key"}}, 1);
  add_adapters(other, {.rank = 8, .targets = {"key"}}, 2);
  const at::Tensor a = one.layers[0].key.adapter.a;
  const double bound = 1 / std::sqrt(24.0);  // inputs
  EXPECT_TRUE(a.equal(same.layers[0].key.adapter.a));
  EXPECT_FALSE(a.equal(other.layers[0].key.adapter.a));
  EXPECT_FALSE(a.equal(one.layers[1].key.adapter.a));
  EXPECT_LE(a.abs().max().item<double>(), bound);
  EXPECT_NEAR(a.std().item<double>(), bound / std::sqrt(3.0), 0.1 * bound);
}

TEST(Lora, OnlyTheAdaptersAreTrained) {
  Adapted adapted(reference::small_config(), {"query", "down"});
  Weights& weights = adapted.model.weights();
  const Weights before = weights.clone();
  AdamW optimizer(weights.trainable(), {.learning_rate = 0.1, .weight_decay = 0.1});
  EXPECT_EQ(weights.trainable().size(), 2u * 2 * 2);  // layers, matrices, factors
  adapted.logits(weights).square().sum().backward();
  optimizer.step(1.0);
  const auto then = before.named(), now = weights.named();
  for (size_t i = 0; i < now.size(); ++i) {
    const bool factor = now[i].first.find("lora_") != std::string::npos;
    EXPECT_EQ(now[i].second.equal(then[i].second), !factor) << now[i].first;
  }
}

TEST(Lora, AValueHeadIsTrainedBesideTheAdapters) {
  Weights weights = reference::random_weights(reference::small_config(), 0.2);
  weights.value_head = at::randn({1, 24});
  add_adapters(weights, {.rank = 2, .targets = {"query"}}, 1);
  EXPECT_TRUE(weights.value_head.requires_grad());
  EXPECT_FALSE(weights.embedding.requires_grad());
}

TEST(Lora, TargetsAreEndsOfNames) {
  const std::string whole = "model.layers.3.self_attn.q_proj", part = "model.layers.3.self_attn.qkv_proj[query]";
  EXPECT_TRUE(is_target(whole, {"o_proj", "q_proj"}));
  EXPECT_TRUE(is_target(whole, {"self_attn.q_proj"}));
  EXPECT_TRUE(is_target(whole, {kAllLinear}));
  EXPECT_FALSE(is_target(whole, {"proj"}));
  EXPECT_TRUE(is_target(part, {"qkv_proj"}));
  EXPECT_TRUE(is_target(part, {"qkv_proj[query]"}));
  EXPECT_FALSE(is_target(part, {"qkv_proj[key]"}));
}

TEST(Lora, ATargetThatMeansNothingIsRefused) {
  const std::vector<std::string> names{"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj"};
  EXPECT_THAT(message_of<UserError>([&] { check_targets(names, {}); }), HasSubstr("targets is empty"));
  EXPECT_THAT(message_of<UserError>([&] { check_targets(names, {"v_proj", "q_prj"}); }), HasSubstr("did you mean \"q_proj\"?"));
}

TEST(Lora, ATargetThatMeansExpertsAloneIsToldSo) {
  const std::vector<std::string> names{"model.layers.0.self_attn.q_proj"}, experts{"model.layers.0.mlp.experts.0.up_proj"};
  EXPECT_THAT(message_of<UserError>([&] { check_targets(names, {"up_proj"}, experts); }),
              HasSubstr("the matrices \"up_proj\" of this model are of its experts, which cannot have adapters"));
}

}  // namespace
}  // namespace sluice::models::lora_test
