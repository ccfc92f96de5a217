#include "models/sample/load_packed.h"

#include <utility>

#include "base/error.h"

namespace sluice::models {
namespace {

void let_go_of_layer(LayerWeights& layer) {
  LayerWeights none;
  none.network = layer.network;
  none.feed_forward.resize(layer.feed_forward.size());  // who loads has pointers to its places
  layer = none;
}

void let_go_outside_layers(Weights& weights) {
  weights.embedding = weights.positions = weights.head = weights.value_head = at::Tensor();
  weights.final_norm = weights.final_norm_bias = at::Tensor();
}

}  // namespace

PackedModel load_packed(const std::filesystem::path& folder, const LoadOptions& options) {
  PackedWeights packed(options.compute.precision);
  if (!options.device.is_cpu()) {
    const Transformer whole = load_transformer(folder, options);
    packed.pack(whole.weights());
    return {whole.config(), std::move(packed)};
  }
  const bool tied = has_language_head(options.head) && read_config(folder, options.families).tied_embeddings;
  LoadOptions taking = options;
  taking.loaded = [&](Weights& weights, int64_t layer) {
    if (layer >= 0) {
      packed.pack_layer(weights, static_cast<size_t>(layer));
      return let_go_of_layer(weights.layers[static_cast<size_t>(layer)]);
    }
    if (tied) weights.head = weights.embedding;
    packed.pack_outside_layers(weights);
    let_go_outside_layers(weights);
  };
  const Transformer emptied = load_transformer(folder, taking);
  SLUICE_CHECK(!packed.head().empty(), "a model without a language model head cannot be sampled from");
  return {emptied.config(), std::move(packed)};
}

}  // namespace sluice::models
