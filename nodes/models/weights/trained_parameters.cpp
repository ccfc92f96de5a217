#include "nodes/models/weights/trained_parameters.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "models/folder/adapter_folder.h"
#include "models/folder/hub_cache.h"
#include "models/kernels/quantised_rows.h"
#include "models/layers/adaptable_matrices.h"
#include "models/layers/attention_sublayer.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/feed_forward.h"
#include "models/layers/packed_linear.h"
#include "models/layers/weight_names.h"
#include "models/train/flat_layout.h"
#include "models/train/freeze.h"

namespace sluice::nodes {
namespace {

constexpr int64_t kFloat = 4;

using models::ExpectedWeight;

int64_t size_of(const ExpectedWeight& weight) {
  int64_t count = 1;
  for (const int64_t size : weight.shape) count *= size;
  return count;
}

int64_t frozen_bytes(const ExpectedWeight& weight, const models::Weights& weights, models::Precision precision,
                     const models::QuantisationOptions& quantisation) {
  if (quantisation.any() && weight.quantises) return models::quantised_bytes(quantisation, weight.shape[0], weight.shape[1]);
  return size_of(weight) * (models::is_operand(weight, weights) ? models::bytes_of(precision) : kFloat);
}

// Nothing else can have an adapter.
std::vector<ExpectedWeight> layer_matrices(const std::vector<ExpectedWeight>& expected, models::Weights& weights) {
  std::vector<ExpectedWeight> matrices;
  for (const ExpectedWeight& weight : expected) {
    const bool table = weight.slot == &weights.embedding || weight.slot == &weights.positions;
    if (weight.kind == ExpectedWeight::Kind::kMatrix && !table) matrices.push_back(weight);
  }
  return matrices;
}

std::vector<ExpectedWeight> adapted_matrices(const std::vector<ExpectedWeight>& matrices, const LoraParams& lora) {
  std::vector<std::string> names, experts;
  for (const ExpectedWeight& matrix : matrices) (matrix.adapts ? names : experts).push_back(models::module_name(matrix.name));
  models::check_targets(names, lora.targets, experts);
  std::vector<ExpectedWeight> adapted = matrices;
  std::erase_if(adapted, [&](const ExpectedWeight& matrix) {
    return !matrix.adapts || !models::is_target(models::module_name(matrix.name), lora.targets);
  });
  return adapted;
}

// Names and sizes of the factors of all adapters.
std::vector<std::pair<std::string, int64_t>> adapter_factors(const std::vector<ExpectedWeight>& matrices,
                                                             const LoraParams& lora) {
  std::vector<std::pair<std::string, int64_t>> factors;
  for (const ExpectedWeight& matrix : adapted_matrices(matrices, lora)) {
    const std::string name = models::module_name(matrix.name);
    factors.emplace_back(models::factor_a_name(name), lora.rank * matrix.shape[1]);
    factors.emplace_back(models::factor_b_name(name), lora.rank * matrix.shape[0]);
  }
  return factors;
}

// The matrices of experts that ranks may share out, by their places.
std::set<const at::Tensor*> expert_matrices(const models::ModelConfig& config, const models::Weights& weights) {
  std::set<const at::Tensor*> matrices;
  for (int64_t i = 0; i < std::ssize(weights.layers); ++i) {
    if (!config.is_mixture(i)) continue;
    const std::vector<models::LinearWeights>& network = weights.layers[static_cast<size_t>(i)].feed_forward;
    for (size_t linear = 0; linear < static_cast<size_t>(config.experts.count) * models::Mlp::kLinears; ++linear)
      matrices.insert(&network[models::Experts::linear_of(0, models::Mlp::kGate) + linear].weight);
  }
  return matrices;
}

// A tied embedding has its gradient from the first to the last, and beside it one layer at a time has, or a head. Where one
// weight ends and another begins a page stays.
int64_t passing_bytes(const models::ModelConfig& config, const std::map<int64_t, int64_t>& by_layer, int64_t embedding,
                      int64_t weights) {
  constexpr int64_t kPage = 4096;
  int64_t largest = 0;
  for (const auto& [layer, floats] : by_layer) largest = std::max(largest, floats);
  return (config.tied_embeddings ? embedding + largest : std::max(embedding, largest)) * kFloat + weights * kPage;
}

}  // namespace

engine::ParamSet<LoraParams> lora_params() {
  engine::ParamSet<LoraParams> set;
  set.param("rank", &LoraParams::rank).between(1, 65536).doc("inner size of the change of a matrix");
  set.param("alpha", &LoraParams::alpha).above(0).doc("the change counts alpha / rank times");
  set.param("targets", &LoraParams::targets)
      .doc("last parts of the names of matrices in the layers, such as \"q_proj\"; \"all-linear\": all that can have one");
  set.param("adapter", &LoraParams::adapter)
      .must_exist()
      .found_by([](const std::string& text, const std::filesystem::path& path) { return models::model_folder(text, path); })
      .doc("a folder in PEFT's format, with whose values they begin; or an id of the Hub, as checkpoint");
  set.param("save", &LoraParams::save)
      .harmless()
      .doc("merged: the model with them, adapter: they alone in PEFT's format, both: the second in a subfolder adapter/");
  return set;
}

void check_first_values(const models::ModelConfig& config, models::Head head, const LoraParams& lora) {
  if (!lora.adapter) return;
  const auto sized = [](std::vector<int64_t> shape) { return at::empty(shape, at::TensorOptions(at::kMeta).dtype(at::kFloat)); };
  models::Weights shapes_only;
  for (const ExpectedWeight& weight : models::expected_weights(config, head, shapes_only)) *weight.slot = sized(weight.shape);
  for (const models::AdaptableMatrix& matrix : models::adaptable_matrices(shapes_only)) {
    if (!models::is_target(matrix.name, lora.targets)) continue;
    const int64_t outputs = matrix.weight->size(0), inputs = matrix.weight->size(1);
    *matrix.adapter = {
        .a = sized({lora.rank, inputs}), .b = sized({outputs, lora.rank}), .scale = lora.alpha / static_cast<double>(lora.rank)};
  }
  models::check_adapter(shapes_only, *lora.adapter);
}

ParameterBytes parameter_bytes(const models::ModelConfig& config, models::Head head, models::Precision precision,
                               const TrainedParameters& trained, const models::QuantisationOptions& quantisation,
                               int64_t expert_ranks) {
  models::Weights shapes_only;
  const auto expected = models::expected_weights(config, head, shapes_only);
  const std::set<const at::Tensor*> of_experts = expert_matrices(config, shapes_only);
  std::vector<std::string> names;
  for (const ExpectedWeight& weight : expected) names.push_back(weight.name);
  models::check_freeze(names, trained.freeze);
  std::map<int64_t, int64_t> by_layer;  // floats that are trained
  int64_t embedding = 0;                // likewise
  ParameterBytes bytes;
  for (const ExpectedWeight& weight : expected) {
    bytes.parameters += size_of(weight);
    const bool critic = weight.kind == ExpectedWeight::Kind::kValueHead;
    if (trained.freezes(weight.name) && !(trained.lora && critic)) {
      bytes.frozen += frozen_bytes(weight, shapes_only, precision, quantisation);
      continue;
    }
    bytes.trained_weights.emplace_back(weight.name, size_of(weight));
    (weight.slot == &shapes_only.embedding ? embedding : by_layer[weight.layer]) +=
        size_of(weight) / (of_experts.contains(weight.slot) ? expert_ranks : 1);
  }
  if (trained.lora) {
    for (auto& factor : adapter_factors(layer_matrices(expected, shapes_only), *trained.lora)) {
      bytes.parameters += factor.second;
      bytes.trained_weights.push_back(std::move(factor));
    }
  }
  std::vector<int64_t> moving;
  for (const auto& [name, size] : bytes.trained_weights) moving.push_back(size);
  bytes.trained = models::FlatLayout::floats_for(moving) * kFloat;
  bytes.passing = passing_bytes(config, by_layer, embedding, std::ssize(moving));
  return bytes;
}

ParameterBytes frozen_parameter_bytes(const models::ModelConfig& config, models::Head head, models::Precision precision,
                                      const models::QuantisationOptions& quantisation) {
  models::Weights shapes_only;
  ParameterBytes bytes;
  for (const ExpectedWeight& weight : models::expected_weights(config, head, shapes_only)) {
    bytes.parameters += size_of(weight);
    bytes.frozen += frozen_bytes(weight, shapes_only, precision, quantisation);
  }
  return bytes;
}

int64_t quantised_matrix_bytes(const models::ModelConfig& config, const models::QuantisationOptions& quantisation) {
  models::Weights shapes_only;
  int64_t bytes = 0;
  for (const ExpectedWeight& weight : models::expected_weights(config, models::Head::kLanguageModel, shapes_only))
    if (weight.quantises) bytes += models::quantised_bytes(quantisation, weight.shape[0], weight.shape[1]);
  return bytes;
}

int64_t packed_adapter_bytes(const models::ModelConfig& config, const LoraParams& lora) {
  models::Weights shapes_only;
  const auto expected = models::expected_weights(config, models::Head::kLanguageModel, shapes_only);
  int64_t bytes = 0;
  for (const ExpectedWeight& matrix : adapted_matrices(layer_matrices(expected, shapes_only), lora))
    bytes += models::PackedAdapter::bytes_for(lora.rank, matrix.shape[0], matrix.shape[1]);
  return bytes;
}

bool trains_routers(const models::ModelConfig& config, models::Head head, const TrainedParameters& trained) {
  models::Weights shapes_only;
  const auto expected = models::expected_weights(config, head, shapes_only);
  const auto is_router = [&](const ExpectedWeight& weight) {
    if (weight.layer < 0 || !config.is_mixture(weight.layer)) return false;
    const models::LayerWeights& layer = shapes_only.layers[static_cast<size_t>(weight.layer)];
    return weight.slot == &layer.feed_forward[models::Experts::kRouter].weight;
  };
  return std::ranges::any_of(expected,
                             [&](const ExpectedWeight& weight) { return is_router(weight) && !trained.freezes(weight.name); });
}

// Twice the inner products of the tokens, and the gradients of the factors of the layer that has most with what is transposed for
// them; in bfloat16, what is widened for them.
std::function<int64_t(int64_t tokens)> adapter_activations(const models::ModelConfig& config, const LoraParams& lora,
                                                           models::Precision precision) {
  models::Weights shapes_only;
  const auto expected = models::expected_weights(config, models::Head::kLanguageModel, shapes_only);
  int64_t most = 0;
  std::map<int64_t, int64_t> by_layer;
  for (const ExpectedWeight& matrix : adapted_matrices(layer_matrices(expected, shapes_only), lora))
    most = std::max(most, by_layer[matrix.layer] += lora.rank * (matrix.shape[0] + matrix.shape[1]));
  return [config, precision, most, rank = lora.rank](int64_t tokens) {
    const models::PassShape shape{config, precision, tokens};
    int64_t widened = models::attention_adapter_bytes(shape);
    for (int64_t layer = 0; layer < config.layers; ++layer)
      widened = std::max(widened, models::feed_forward_of(config, layer).adapter_bytes(shape.of_layer(layer)));
    return widened + (2 * tokens * rank + 2 * most) * kFloat;
  };
}

void prepare(models::Weights& weights, const TrainedParameters& trained, uint64_t seed) {
  models::freeze(weights, trained.freeze);
  if (!trained.lora) return;
  models::add_adapters(weights, trained.lora->options(), seed);
  if (trained.lora->adapter) models::read_adapter(weights, *trained.lora->adapter);
}

}  // namespace sluice::nodes
