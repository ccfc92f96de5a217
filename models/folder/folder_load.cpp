#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "base/error.h"
#include "models/folder/folder.h"
#include "models/folder/folder_check.h"
#include "models/folder/safetensors.h"
#include "models/folder/stored_codes.h"
#include "models/kernels/quantised_rows.h"
#include "models/layers/fresh_weights.h"
#include "models/layers/weight_names.h"

namespace sluice::models {
namespace {

bool needs_gradient(const std::string& name, const LoadOptions& options) {
  return options.trainable && !(options.frozen && options.frozen(name));
}

bool is_to_quantise(const ExpectedWeight& weight, const LoadOptions& options) {
  return options.quantisation.any() && weight.quantises;
}

at::ScalarType dtype_of(const ExpectedWeight& weight, const Weights& weights, const LoadOptions& options) {
  if (is_to_quantise(weight, options)) return at::kFloat;
  const bool narrow = options.narrow_operands && options.compute.precision == Precision::kBfloat16;
  return narrow && is_operand(weight, weights) && !needs_gradient(weight.name, options) ? at::kBFloat16 : options.dtype;
}

at::Tensor read_weight(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config,
                       at::ScalarType dtype) {
  const at::Tensor result = at::empty(weight.shape, dtype);
  const StoredWeight& stored = weight.stored;
  const std::string name = name_in(tensors, stored, config);
  tensors.read_into(name, stored.transposed ? 1 : 0, stored.first_output, stored.transposed ? result.t() : result);
  return result;
}

// Each weight becomes make(weight), in order.
template <class Make>
void fill(const std::vector<ExpectedWeight>& expected, Weights& weights, const LoadOptions& options, const Make& make) {
  for (size_t i = 0; i < expected.size(); ++i) {
    at::Tensor read = make(expected[i]);
    if (is_to_quantise(expected[i], options) && !is_quantised(read)) read = quantised(read, options.quantisation);
    SLUICE_CHECK(!is_quantised(read) || !needs_gradient(expected[i].name, options), "a weight that is trained is not quantised");
    *expected[i].slot = options.placed ? options.placed(expected[i], read) : read;
    const bool whole = i + 1 == expected.size() || expected[i + 1].layer != expected[i].layer;
    if (whole && options.loaded) options.loaded(weights, expected[i].layer);
  }
}

void fill_fresh(const std::vector<ExpectedWeight>& expected, Weights& weights, const ModelConfig& config,
                const LoadOptions& options) {
  fill(expected, weights, options, [&](const ExpectedWeight& weight) {
    return fresh_weight(weight, config, options.seed, dtype_of(weight, weights, options));
  });
}

void fill_from(const TensorFolder& tensors, const std::vector<ExpectedWeight>& expected, Weights& weights,
               const ModelConfig& config, const LoadOptions& options, const std::optional<StoredQuantisation>& stored) {
  throw_tensor_problems(tensor_problems(tensors, expected, config, options.head, stored), tensors, config);
  throw_tensor_problems(tied_problems(tensors, expected, config), tensors, config);
  fill(expected, weights, options, [&](const ExpectedWeight& weight) {
    if (stored && weight.quantises) {
      const at::Tensor rows = read_codes(tensors, weight, config, *stored);
      return options.dtype == at::kFloat ? rows : dequantised(rows).to(options.dtype);
    }
    const bool fresh = weight.kind == ExpectedWeight::Kind::kValueHead && !tensors.contains(weight.stored.name);
    return fresh ? fresh_weight(weight, config, options.seed, options.dtype)
                 : read_weight(tensors, weight, config, dtype_of(weight, weights, options));
  });
}

}  // namespace

void check_weights(const std::filesystem::path& folder, Head head) {
  const ModelConfig config = read_config(folder);
  Weights weights;
  const auto expected = expected_weights(config, head, weights);
  const TensorFolder tensors(folder);
  throw_tensor_problems(tensor_problems(tensors, expected, config, head, stored_quantisation(folder)), tensors, config);
}

Transformer load_transformer(const std::filesystem::path& folder, const LoadOptions& options) {
  SLUICE_CHECK(!options.trainable || options.dtype == at::kFloat, "weights that are trained are float32");
  SLUICE_CHECK(!options.loaded || (!options.trainable && options.device.is_cpu()), "weights are taken as they are read");
  SLUICE_CHECK(!options.placed || options.device.is_cpu(), "weights are placed in memory of the host");
  const at::NoGradGuard no_gradient;
  const ModelConfig config = read_config(folder, options.families);
  Weights weights;
  const auto expected = expected_weights(config, options.head, weights);
  if (options.random_init) {
    fill_fresh(expected, weights, config, options);
  } else {
    fill_from(TensorFolder(folder), expected, weights, config, options, stored_quantisation(folder));
  }
  if (config.tied_embeddings && has_language_head(options.head)) weights.head = weights.embedding;
  SLUICE_CHECK(!options.quantisation.any() || options.device.is_cpu(), "quantised weights are on the CPU");
  if (!options.device.is_cpu()) weights = weights.to(options.device);
  for (const auto& [name, tensor] : weights.named()) tensor.set_requires_grad(needs_gradient(name, options));
  return Transformer(config, std::move(weights), options.compute);
}

}  // namespace sluice::models
