#include "models/layers/adaptable_matrices.h"

#include <map>
#include <string_view>

#include "models/layers/weight_names.h"

namespace sluice::models {
namespace {

constexpr std::string_view kWeight = ".weight";

}  // namespace

std::string module_name(std::string weight) {
  const size_t at = weight.rfind(kWeight);
  return at == std::string::npos ? weight : weight.erase(at, kWeight.size());
}

std::vector<AdaptableMatrix> adaptable_matrices(Weights& weights) {
  std::map<const at::Tensor*, std::string> names;
  for (const auto& [name, tensor] : weight_slots(weights)) names[tensor] = name;
  std::vector<AdaptableMatrix> matrices;
  for (LayerWeights& layer : weights.layers) {
    for (LinearWeights* linear : layer.linears()) {
      if (linear->weight.defined())
        matrices.push_back({module_name(names.at(&linear->weight)), &linear->weight, &linear->adapter});
    }
  }
  return matrices;
}

}  // namespace sluice::models
