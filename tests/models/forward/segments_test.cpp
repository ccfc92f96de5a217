#include "models/layers/segment.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/forward/activation_bytes.h"
#include "models/forward/transformer.h"
#include "models/layers/feed_forward/experts.h"
#include "models/memory/tensor_memory.h"
#include "tests/models/dense_reference.h"
#include "tests/models/segments_in_threads.h"

// A pass that ranks compute together against the whole one.
namespace sluice::models::segments_test {
namespace {

using testing::SegmentsInThreads;

// Samples that are cut, whole ones, and one without tokens.
const std::vector<int64_t> kOffsets{0, 21, 22, 22, 30, 55};

struct SegmentCase {
  std::string name;
  Compute compute;
  int ranks;
  int ring = 1;
  int expert_ranks = 1;
};

// Where experts are shared out, mixtures alone.
std::vector<reference::NamedConfig> configs_for(int head_ranks, int expert_ranks = 1) {
  std::vector<reference::NamedConfig> configs = reference::configs_of_every_switch();
  for (auto& [name, config] : configs) {
    if (config.kv_heads % head_ranks != 0) config.heads = config.kv_heads = head_ranks;
    config.experts.count = (config.experts.count + expert_ranks - 1) / expert_ranks * expert_ranks;
  }
  if (expert_ranks > 1) std::erase_if(configs, [](const auto& named) { return !named.config.experts.any(); });
  return configs;
}

Transformer leaves_of(const ModelConfig& config, const Weights& weights, Compute compute) {
  Weights own = weights.clone();
  for (const auto& [name, weight] : reference::tensors_of(own)) weight->set_requires_grad(true);
  return {config, own, compute};
}

// The gradients of a loss that is sum_i states_i * slopes_i.
struct Computed {
  at::Tensor states;
  std::vector<at::Tensor> gradients;
};

Computed computed(const Transformer& model, const at::Tensor& tokens, const at::Tensor& slopes, const Segment& segment) {
  const at::Tensor states = model.hidden_states(tokens.narrow(0, segment.begin(), segment.size()), kOffsets, segment);
  (states * slopes.narrow(0, segment.begin(), segment.size())).sum().backward();
  Computed result{.states = states.detach(), .gradients = {}};
  for (const auto& [name, weight] : model.weights().trainable())
    result.gradients.push_back(weight.grad().defined() ? weight.grad() : at::zeros_like(weight));
  return result;
}

double size_of(const at::Tensor& tensor) { return tensor.norm().item().toDouble(); }

// Some weights have no effect, such as the bias of keys: what they have of a gradient is rounding.
double size_of_largest(const std::vector<at::Tensor>& gradients) {
  double largest = 0;
  for (const at::Tensor& gradient : gradients) largest = std::max(largest, size_of(gradient));
  return largest;
}

class Segments : public ::testing::TestWithParam<SegmentCase> {};

TEST_P(Segments, GiveTheBitsOfTheWholePassAndItsGradients) {
  const auto& [name, compute, ranks, ring, expert_ranks] = GetParam();
  SegmentsInThreads threads(ranks, ring, expert_ranks);
  const bool rounds = compute.precision != Precision::kFloat32;
  // Operands of products are rounded alike, their sums not; in a ring what attention gives rounds otherwise, and all after it.
  const double most = ring == 1 ? (rounds ? 1e-2 : 1e-6) : (rounds ? 5e-2 : 2e-5);
  for (const auto& [what, config] : configs_for(ranks / ring, expert_ranks)) {
    at::manual_seed(17);  // the bounds are tight: what is drawn must not depend on the configs before
    const Weights weights = reference::random_weights(config, 0.2);
    const at::Tensor tokens = at::randint(config.vocab_size, {kOffsets.back()}, at::kLong);
    const at::Tensor slopes = at::randn({kOffsets.back(), config.hidden_size});
    const Computed whole = computed(leaves_of(config, weights, compute), tokens, slopes, {.tokens = kOffsets.back()});
    std::vector<Computed> parts(static_cast<size_t>(ranks));
    threads.on_all(kOffsets.back(), [&](const Segment& segment) {
      parts[static_cast<size_t>(segment.place)] = computed(leaves_of(config, weights, compute), tokens, slopes, segment);
    });
    std::vector<at::Tensor> states;
    for (const Computed& part : parts) states.push_back(part.states);
    EXPECT_TRUE(ring > 1 || at::equal(at::cat(states), whole.states)) << what;
    EXPECT_LT((at::cat(states) - whole.states).abs().max().item().toDouble(), rounds ? 1e-1 : 1e-5) << what;
    const double of_nothing = 1e-2 * size_of_largest(whole.gradients);
    for (size_t i = 0; i < whole.gradients.size(); ++i) {
      at::Tensor sum = at::zeros_like(whole.gradients[i]);
      for (const Computed& part : parts) sum += part.gradients[i];
      const double size = std::max(size_of(whole.gradients[i]), of_nothing);
      EXPECT_LT(size_of(sum - whole.gradients[i]) / size, most) << what << ", weight " << i;
    }
  }
}

constexpr auto kNarrow = Precision::kBfloat16;
constexpr auto kLayer = ActivationCheckpointing::kLayer;
INSTANTIATE_TEST_SUITE_P(Ranks, Segments,
                         ::testing::Values(SegmentCase{"Two", {}, 2}, SegmentCase{"Four", {}, 4},
                                           SegmentCase{"TwoWithCheckpoints", {Precision::kFloat32, kLayer}, 2},
                                           SegmentCase{"FourInBfloat16", {kNarrow}, 4}, SegmentCase{"RingOfTwo", {}, 2, 2},
                                           SegmentCase{"RingOfThree", {}, 3, 3}, SegmentCase{"RingOfFour", {}, 4, 4},
                                           SegmentCase{"RingOfTwoPairs", {}, 4, 2},
                                           SegmentCase{"RingOfThreePairs", {Precision::kFloat32, kLayer}, 6, 3},
                                           SegmentCase{"RingOfTwoPairsInBfloat16", {kNarrow}, 4, 2},
                                           SegmentCase{"TwoWithExperts", {}, 2, 1, 2},
                                           SegmentCase{"FourWithExperts", {}, 4, 1, 4},
                                           SegmentCase{"TwoPairsWithExperts", {Precision::kFloat32, kLayer}, 4, 1, 2},
                                           SegmentCase{"FourWithExpertsInBfloat16", {kNarrow}, 4, 1, 4},
                                           SegmentCase{"RingOfTwoPairsWithExperts", {}, 4, 2, 2}),
                         [](const auto& info) { return info.param.name; });

TEST(Segments, MayBeWithoutTokens) {
  const ModelConfig config = configs_for(4).front().config;
  const Transformer model(config, reference::random_weights(config, 0.2));
  const at::Tensor tokens = at::randint(config.vocab_size, {3}, at::kLong);
  const std::vector<int64_t> offsets{0, 1, 3};
  const at::NoGradGuard no_gradient;
  std::vector<at::Tensor> states(4);
  SegmentsInThreads(4).on_all(3, [&](const Segment& segment) {
    const at::NoGradGuard none_here;
    states[static_cast<size_t>(segment.place)] =
        model.hidden_states(tokens.narrow(0, segment.begin(), segment.size()), offsets, segment);
  });
  EXPECT_TRUE(at::equal(at::cat(states), model.hidden_states(tokens, offsets)));
}

// A mixture whose routers tell two experts from the others above all, so that ranks have many rows or few, in several rounds.
ModelConfig uneven_mixture() {
  ModelConfig config = reference::small_config();
  config.heads = config.kv_heads = 4;
  config.experts = {.count = 8, .per_token = 2, .size = 20, .shared_size = 12, .normalised = true};
  return config;
}

Weights uneven_weights(const ModelConfig& config) {
  Weights weights = reference::random_weights(config, 0.2);
  for (LayerWeights& layer : weights.layers)
    if (layer.network) layer.feed_forward[Experts::kRouter].weight.narrow(0, 2, 6).mul_(0.01);
  return weights;
}

// Each owner adds the rows of all segments in the order of the tokens, as a rank that is alone.
TEST(SharedOutExperts, HaveTheGradientsOfOneRankToTheBit) {
  const ModelConfig config = uneven_mixture();
  const Weights weights = uneven_weights(config);
  const std::vector<int64_t> offsets{0, 1500, 1501, 2600};
  const at::Tensor tokens = at::randint(config.vocab_size, {offsets.back()}, at::kLong);
  const at::Tensor slopes = at::randn({offsets.back(), config.hidden_size});
  const auto leaves = [&] { return leaves_of(config, weights, {}); };
  const Transformer alone = leaves();
  (alone.hidden_states(tokens, offsets) * slopes).sum().backward();
  std::vector<Transformer> models;
  for (int place = 0; place < 4; ++place) models.push_back(leaves());
  SegmentsInThreads(4, 1, 4).on_all(offsets.back(), [&](const Segment& segment) {
    const auto own = [&](const at::Tensor& all) { return all.narrow(0, segment.begin(), segment.size()); };
    (models[static_cast<size_t>(segment.place)].hidden_states(own(tokens), offsets, segment) * own(slopes)).sum().backward();
  });
  for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
    for (size_t expert = 0; expert < 8; ++expert) {
      for (const Mlp::Linear linear : {Mlp::kGate, Mlp::kUp, Mlp::kDown}) {
        const auto of = [&](const Transformer& model) {
          return model.weights().layers[layer].feed_forward[Experts::linear_of(expert, linear)].weight.grad();
        };
        for (size_t place = 0; place < 4; ++place)
          EXPECT_EQ(of(models[place]).defined(), place == expert / 2) << expert << " on " << place;
        EXPECT_TRUE(at::equal(of(models[expert / 2]), of(alone))) << expert << " of layer " << layer;
      }
    }
  }
}

// However tokens are routed, and with layers that have an MLP between them.
void expect_what_is_predicted(const std::vector<int64_t>& dense_layers) {
  ModelConfig config = uneven_mixture();
  config.experts.dense_layers = dense_layers, config.intermediate_size = 300;
  config.hidden_size = 96, config.head_dim = 24, config.experts.size = 120, config.experts.shared_size = 64;
  config.layers = 4, config.max_positions = 4096;
  constexpr int64_t kTokens = 2400;
  const std::vector<int64_t> offsets{0, kTokens};
  const at::Tensor tokens = at::randint(config.vocab_size, {kTokens}, at::kLong);
  for (const Compute& compute : std::vector<Compute>{{}, {Precision::kFloat32, kLayer}, {kNarrow}}) {
    for (const bool uneven : {false, true}) {
      const Weights weights = uneven ? uneven_weights(config) : reference::random_weights(config, 0.2);
      std::vector<int64_t> peaks(4);
      SegmentsInThreads(4, 1, 4).on_all(kTokens, [&](const Segment& segment) {
        const Transformer model = leaves_of(config, weights, compute);
        for (const auto& [name, weight] : model.weights().trainable()) weight.mutable_grad() = at::zeros_like(weight);
        TensorMemory memory;
        memory.watch_this_thread();
        const auto sum_of = [&](const at::Tensor& part) { return model.hidden_states(part, offsets, segment).sum(); };
        sum_of(tokens.narrow(0, segment.begin(), segment.size())).backward();
        peaks[static_cast<size_t>(segment.place)] = memory.take_peak();
      });
      const ModelPass pass{.training = true,
                           .tokens = kTokens,
                           .longest_sample = kTokens,
                           .ranks = 4,
                           .expert_ranks = 4,
                           .precision = compute.precision,
                           .recompute = compute.checkpointing == kLayer};
      for (const int64_t peak : peaks) EXPECT_LE(peak, activation_bytes(config, pass).tensors) << uneven;
    }
  }
}

TEST(SharedOutExperts, TakeWhatIsPredicted) { expect_what_is_predicted({}); }
TEST(SharedOutExperts, TakeWhatIsPredictedBesideMlps) {
  expect_what_is_predicted({0, 2});
  expect_what_is_predicted({3});
}

// What a rank takes beside weights, as LibTorch reports it.
TEST(Segments, TakeTheirShareOfTheActivations) {
  ModelConfig config = reference::small_config();
  config.hidden_size = 96, config.heads = config.kv_heads = 4, config.head_dim = 24, config.intermediate_size = 256;
  config.layers = 8, config.max_positions = 4096;
  constexpr int64_t kTokens = 2048;
  const std::vector<int64_t> offsets{0, kTokens};
  const Weights weights = reference::random_weights(config, 0.05);
  const at::Tensor tokens = at::randint(config.vocab_size, {kTokens}, at::kLong);
  int64_t of_whole = 0;
  for (const auto& [ranks, ring] : std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {4, 1}, {2, 2}, {4, 2}, {4, 4}}) {
    std::vector<int64_t> peaks(static_cast<size_t>(ranks));
    SegmentsInThreads(ranks, ring).on_all(kTokens, [&](const Segment& segment) {
      const Transformer model = leaves_of(config, weights, {});
      for (const auto& [name, weight] : model.weights().trainable()) weight.mutable_grad() = at::zeros_like(weight);
      TensorMemory memory;
      memory.watch_this_thread();
      const auto sum_of = [&](const at::Tensor& part) { return model.hidden_states(part, offsets, segment).sum(); };
      sum_of(tokens.narrow(0, segment.begin(), segment.size())).backward();  // the states are gone by then
      peaks[static_cast<size_t>(segment.place)] = memory.take_peak();
    });
    if (ranks == 1) of_whole = peaks.front();
    const ModelPass pass{.training = true, .tokens = kTokens, .longest_sample = kTokens, .ranks = ranks, .ring = ring};
    for (const int64_t peak : peaks) {
      EXPECT_LE(peak, activation_bytes(config, pass).tensors) << ranks << " " << ring;
      EXPECT_LE(static_cast<double>(peak), (1.0 / ranks + .05) * static_cast<double>(of_whole)) << ranks << " " << ring;
    }
  }
}

}  // namespace
}  // namespace sluice::models::segments_test
