#include "models/layers/adaptable_matrices.h"

#include <array>
#include <map>
#include <string_view>

#include "models/layers/weight_names.h"

namespace sluice::models {
namespace {

constexpr std::string_view kWeight = ".weight";

struct AdaptedField {
  at::Tensor LayerWeights::*weight;
  Adapter LayerAdapters::*adapter;
};

constexpr std::array<AdaptedField, 7> kFields{{{&LayerWeights::query, &LayerAdapters::query},
                                               {&LayerWeights::key, &LayerAdapters::key},
                                               {&LayerWeights::value, &LayerAdapters::value},
                                               {&LayerWeights::attention_output, &LayerAdapters::attention_output},
                                               {&LayerWeights::gate, &LayerAdapters::gate},
                                               {&LayerWeights::up, &LayerAdapters::up},
                                               {&LayerWeights::down, &LayerAdapters::down}}};

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
    for (const AdaptedField& field : kFields) {
      at::Tensor& weight = layer.*field.weight;
      if (weight.defined()) matrices.push_back({module_name(names.at(&weight)), &weight, &(layer.adapters.*field.adapter)});
    }
  }
  return matrices;
}

}  // namespace sluice::models
