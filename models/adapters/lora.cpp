#include "models/adapters/lora.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/numbers/random.h"
#include "base/text/strings.h"
#include "models/kernels/quantised_rows.h"
#include "models/layers/fresh_weights.h"

namespace sluice::models {
namespace {

// The part in brackets, if there is one, taken off.
std::string without_part(const std::string& name) { return name.substr(0, name.find('[')); }

bool ends_module(const std::string& name, const std::string& target) { return name == target || name.ends_with("." + target); }

at::Tensor uniform(std::vector<int64_t> shape, double bound, uint64_t seed, const std::string& name) {
  const at::Tensor result = at::empty(shape, at::kFloat);
  RandomStream random(seed, stream_of_name(name));
  float* data = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) data[i] = static_cast<float>(bound * (2 * random.uniform() - 1));
  return result;
}

Adapter fresh_adapter(const AdaptableMatrix& matrix, const LoraOptions& options, uint64_t seed) {
  const int64_t outputs = matrix.weight->size(0), inputs = inputs_of(*matrix.weight);
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  const at::Device device = matrix.weight->device();
  return {.a = uniform({options.rank, inputs}, bound, seed, matrix.name + ".lora_A").to(device),
          .b = at::zeros({outputs, options.rank}, at::TensorOptions(at::kFloat).device(device)),
          .scale = options.alpha / static_cast<double>(options.rank)};
}

}  // namespace

bool is_target(const std::string& name, const std::vector<std::string>& targets) {
  return std::any_of(targets.begin(), targets.end(), [&](const std::string& target) {
    return target == kAllLinear || ends_module(name, target) || ends_module(without_part(name), target);
  });
}

void check_targets(const std::vector<std::string>& names, const std::vector<std::string>& targets,
                   const std::vector<std::string>& experts) {
  std::set<std::string> known{kAllLinear};
  for (const std::string& name : names) known.insert(without_part(name.substr(name.rfind('.') + 1)));
  const std::vector<std::string> candidates(known.begin(), known.end());
  if (targets.empty()) {
    throw UserError("targets is empty: nothing would be trained",
                    "name matrices (" + join(candidates, ", ") + "), or leave lora out to train all weights");
  }
  const auto means_any = [](const std::string& target, const std::vector<std::string>& of) {
    return std::any_of(of.begin(), of.end(), [&](const std::string& name) { return is_target(name, {target}); });
  };
  for (const std::string& target : targets) {
    if (means_any(target, names)) continue;
    if (means_any(target, experts)) {
      throw UserError("the matrices " + sluice::quoted(target) + " of this model are of its experts, which cannot have adapters",
                      "matrices that can: " + join(candidates, ", "));
    }
    const std::string near = did_you_mean(target, candidates);
    throw UserError("the layers of this model have no matrix " + sluice::quoted(target),
                    near.empty() ? "they have " + join(candidates, ", ") : "did you mean " + sluice::quoted(near) + "?");
  }
}

void add_adapters(Weights& weights, const LoraOptions& options, uint64_t seed) {
  for (const auto& [name, tensor] : weights.named()) tensor.set_requires_grad(tensor.is_same(weights.value_head));
  for (const AdaptableMatrix& matrix : adaptable_matrices(weights)) {
    if (!is_target(matrix.name, options.targets)) continue;
    *matrix.adapter = fresh_adapter(matrix, options, seed);
    matrix.adapter->a.set_requires_grad(true);
    matrix.adapter->b.set_requires_grad(true);
  }
  SLUICE_CHECK(has_adapters(weights), "no matrix is adapted");
}

bool has_adapters(const Weights& weights) {
  Weights handles = weights;
  const auto matrices = adaptable_matrices(handles);
  return std::any_of(matrices.begin(), matrices.end(), [](const AdaptableMatrix& matrix) { return matrix.adapter->defined(); });
}

Weights without_adapters(const Weights& weights) {
  Weights base = weights;
  for (LayerWeights& layer : base.layers) {
    for (LinearWeights* linear : layer.linears()) linear->adapter = {};
  }
  return base;
}

}  // namespace sluice::models
