#include "models/layers/adaptable_matrices.h"

#include <map>
#include <set>
#include <string_view>

#include "models/layers/weight_names.h"

namespace sluice::models {
namespace {

constexpr std::string_view kWeight = ".weight";

// Of LayerWeights::feed_forward, those that can have none.
std::set<size_t> fixed_linears(const LayerWeights& layer) {
  std::set<size_t> fixed;
  if (!layer.network) return fixed;
  for (const NetworkTensor& tensor : layer.network->tensors)
    if (!tensor.adapts) fixed.insert(tensor.linear);
  return fixed;
}

}  // namespace

std::string module_name(std::string weight) {
  const size_t at = weight.rfind(kWeight);
  return at == std::string::npos ? weight : weight.erase(at, kWeight.size());
}

std::string factor_a_name(const std::string& module) { return module + ".lora_A.weight"; }
std::string factor_b_name(const std::string& module) { return module + ".lora_B.weight"; }

std::vector<AdaptableMatrix> adaptable_matrices(Weights& weights) {
  std::map<const at::Tensor*, std::string> names;
  for (const auto& [name, tensor] : weight_slots(weights)) names[tensor] = name;
  std::vector<AdaptableMatrix> matrices;
  for (LayerWeights& layer : weights.layers) {
    const auto linears = layer.linears();
    const std::set<size_t> fixed = fixed_linears(layer);
    const size_t of_attention = linears.size() - layer.feed_forward.size();
    for (size_t i = 0; i < linears.size(); ++i) {
      if (!linears[i]->weight.defined() || (i >= of_attention && fixed.contains(i - of_attention))) continue;
      matrices.push_back({module_name(names.at(&linears[i]->weight)), &linears[i]->weight, &linears[i]->adapter});
    }
  }
  return matrices;
}

}  // namespace sluice::models
