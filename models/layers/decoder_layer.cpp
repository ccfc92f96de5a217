#include "models/layers/decoder_layer.h"

#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

#include "models/layers/attention_half.h"
#include "models/layers/gradient.h"
#include "models/layers/mlp_half.h"

namespace sluice::models {
namespace {

struct KeptLayer {
  KeptAttention attention;
  KeptMlp mlp;
};

at::Tensor forward(const LayerPass& pass, const LayerWeights& layer, int64_t index, at::Tensor x, KeptLayer* kept) {
  const at::NoGradGuard no_gradient;  // what is computed here has a step of its own
  {
    KeptAttention attention;
    x = attention_forward(pass, layer, pass.config.window_of(index), x, attention);
    if (kept) kept->attention = std::move(attention);
  }
  return mlp_forward(pass, layer, std::move(x), kept ? &kept->mlp : nullptr);
}

void backward(const LayerPass& pass, const LayerWeights& layer, KeptLayer&& kept, const at::Tensor& grad) {
  {
    const KeptMlp mlp = std::move(kept.mlp);  // gone before attention's turn
    mlp_backward(pass, layer, mlp, grad);
  }
  attention_backward(pass, layer, kept.attention, grad);
}

std::vector<at::Tensor> weights_of(const LayerWeights& l) {
  std::vector<at::Tensor> all{l.attention_norm,
                              l.attention_norm_bias,
                              l.query,
                              l.key,
                              l.value,
                              l.query_bias,
                              l.key_bias,
                              l.value_bias,
                              l.query_norm,
                              l.key_norm,
                              l.attention_output,
                              l.attention_output_bias,
                              l.mlp_norm,
                              l.mlp_norm_bias,
                              l.gate,
                              l.up,
                              l.down,
                              l.gate_bias,
                              l.up_bias,
                              l.down_bias,
                              l.mlp_output_norm,
                              l.attention_output_norm};
  const LayerAdapters& adapters = l.adapters;
  for (const Adapter* adapter : {&adapters.query, &adapters.key, &adapters.value, &adapters.attention_output, &adapters.gate,
                                 &adapters.up, &adapters.down}) {
    all.insert(all.end(), {adapter->a, adapter->b});
  }
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
    backward(*pass, layer, std::move(*kept), grad);
    return grad;
  });
  return out;
}

}  // namespace sluice::models
