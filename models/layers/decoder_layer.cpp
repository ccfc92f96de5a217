#include "models/layers/decoder_layer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "models/layers/attention_sublayer.h"
#include "models/layers/feed_forward_sublayer.h"
#include "models/layers/gradient.h"

namespace sluice::models {
namespace {

struct KeptLayer {
  KeptAttention attention;
  KeptFeedForward feed_forward;
};

at::Tensor forward(const LayerPass& pass, const LayerWeights& layer, int64_t index, at::Tensor x, KeptLayer* kept) {
  const at::NoGradGuard no_gradient;  // what is computed here has a step of its own
  {
    KeptAttention attention;
    x = models::attention(pass, layer, index, x, attention);
    if (kept) kept->attention = std::move(attention);
  }
  return feed_forward(pass, layer, index, std::move(x), kept ? &kept->feed_forward : nullptr);
}

void backward(const LayerPass& pass, const LayerWeights& layer, int64_t index, KeptLayer&& kept, const at::Tensor& grad) {
  {
    const KeptFeedForward of = std::move(kept.feed_forward);  // gone before attention's turn
    feed_forward_backward(pass, layer, index, of, grad);
  }
  attention_backward(pass, layer, kept.attention, grad);
}

std::vector<at::Tensor> weights_of(const LayerWeights& l) {
  std::vector<at::Tensor> all{
      l.attention_norm,         l.attention_norm_bias,     l.query_norm, l.key_norm, l.attention_output_norm, l.feed_forward_norm,
      l.feed_forward_norm_bias, l.feed_forward_output_norm};
  for (const LinearWeights* linear : l.linears())
    all.insert(all.end(), {linear->weight, linear->bias, linear->adapter.a, linear->adapter.b});
  return all;
}

}  // namespace

at::Tensor decoder_layer(at::Tensor x, const LayerWeights& layer, int64_t index, std::shared_ptr<const LayerPass> pass) {
  std::vector<at::Tensor> inputs = weights_of(layer);
  inputs.push_back(x);
  const bool records = records_gradient(inputs);
  inputs.clear();  // who needs no gradient of x lets go of it in time
  if (!records) return forward(*pass, layer, index, std::move(x), nullptr);
  auto kept = std::make_shared<KeptLayer>();
  const at::Tensor in = x.detach();
  const at::Tensor out = forward(*pass, layer, index, in, pass->recompute ? nullptr : kept.get());
  attach_backward({out}, x, weights_of(layer), [in, layer, index, pass, kept](std::vector<at::Tensor>&& gradients) {
    at::Tensor grad = owned(std::move(gradients[0]));
    if (pass->recompute) forward(*pass, layer, index, in, kept.get());
    backward(*pass, layer, index, std::move(*kept), grad);
    return grad;
  });
  return out;
}

SublayerBytes decoder_layer_bytes(const PassShape& shape) {
  const SublayerBytes attention = attention_bytes(shape), network = feed_forward_bytes(shape);
  return {.kept = attention.kept + network.kept,
          .keeping = std::max(attention.keeping, attention.kept + network.keeping),
          .forward = std::max(attention.forward, network.forward),
          .backward = std::max(network.backward, attention.backward - network.kept)};  // by then the network's is free
}

}  // namespace sluice::models
