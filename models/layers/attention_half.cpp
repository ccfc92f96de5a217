#include "models/layers/attention_half.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "models/layers/adapter_products.h"
#include "models/layers/matrix_products.h"
#include "models/layers/operand.h"
#include "models/layers/projection.h"

namespace sluice::models {
namespace {

Projection query_of(const LayerWeights& layer) { return {layer.query, layer.query_bias, layer.adapters.query}; }
Projection key_of(const LayerWeights& layer) { return {layer.key, layer.key_bias, layer.adapters.key}; }
Projection value_of(const LayerWeights& layer) { return {layer.value, layer.value_bias, layer.adapters.value}; }
Projection output_of(const LayerWeights& layer) {
  return {layer.attention_output, layer.attention_output_bias, layer.adapters.attention_output};
}

// Queries, keys and values of every token side by side, float32: [T, (Nq + 2 Nk) D]
at::Tensor project_heads(const LayerPass& pass, const LayerWeights& layer, const at::Tensor& in) {
  const PackedMatrix matrix = packed({layer.query, layer.key, layer.value}, pass.precision);
  at::Tensor bias;
  if (layer.query_bias.defined()) bias = at::cat({layer.query_bias, layer.key_bias, layer.value_bias});
  const at::Tensor out = at::empty({in.size(0), matrix.outputs()});
  multiply(in, matrix, bias, out);
  int64_t first = 0;
  for (const Projection& of : {query_of(layer), key_of(layer), value_of(layer)}) {
    if (of.adapter.defined()) add_adapter_output(out.narrow(1, first, of.weight.size(0)), in, of.adapter);
    first += of.weight.size(0);
  }
  return out;
}

// A row for each head, or one for all of a token: what QkNorm says.
at::Tensor normed_rows(const LayerPass& pass, const at::Tensor& x) {
  return pass.config.qk_norm == QkNorm::kHead ? x.view({-1, pass.config.head_dim}) : x;
}

// Queries or keys as scores take them.
at::Tensor scored(const LayerPass& pass, const at::Tensor& projected, const at::Tensor& norm_weight, KeptNorm& kept) {
  if (pass.config.qk_norm == QkNorm::kNone) return turned(projected, pass.layout, pass.precision);
  const at::Tensor rows = projected.contiguous(), out = at::empty(rows.sizes());
  norm_forward(pass.norm(norm_weight), normed_rows(pass, rows), normed_rows(pass, out), kept);
  kept.x = to_operand(kept.x, pass.precision);
  return turned(out, pass.layout, pass.precision);
}

void unscored(const LayerPass& pass, const at::Tensor& grad, const at::Tensor& norm_weight, const KeptNorm& kept) {
  if (pass.config.qk_norm == QkNorm::kNone) return;
  const at::Tensor rows = normed_rows(pass, grad);
  norm_backward(pass.norm(norm_weight), kept, rows, rows, false);
}

}  // namespace

at::Tensor attention_forward(const LayerPass& pass, const LayerWeights& layer, int64_t window, const at::Tensor& x,
                             KeptAttention& kept) {
  kept.read = read_residual(pass, x, pass.norm(layer.attention_norm, layer.attention_norm_bias));
  {
    const at::Tensor all = project_heads(pass, layer, kept.read.in);
    const int64_t queries = layer.query.size(0), keys = layer.key.size(0);
    kept.operands = {.query = scored(pass, all.narrow(1, 0, queries), layer.query_norm, kept.query_norm),
                     .key = scored(pass, all.narrow(1, queries, keys), layer.key_norm, kept.key_norm),
                     .value = to_operand(all.narrow(1, queries + keys, keys), pass.precision).contiguous(),
                     .window = window};
  }
  kept.attended = ragged_attention(kept.operands, pass.layout);
  const at::Tensor out = pass.adds_normed() ? at::empty_like(x) : x.clone(at::MemoryFormat::Contiguous);
  project(output_of(layer), packed({layer.attention_output}, pass.precision), kept.attended.output, out, !pass.adds_normed());
  return pass.adds_normed() ? add_normed(x, out, pass.norm(layer.attention_output_norm), kept.added_norm) : out;
}

void attention_backward(const LayerPass& pass, const LayerWeights& layer, const KeptAttention& kept, const at::Tensor& grad) {
  const AttentionOperands& of = kept.operands;
  {
    const at::Tensor added = added_gradient(pass, pass.norm(layer.attention_output_norm), kept.added_norm, grad);
    add_gradients(output_of(layer), added, kept.attended.output);
    const at::Tensor attended = empty_operand(pass.precision, of.query.sizes());
    project_back(output_of(layer), packed_transposed(layer.attention_output, pass.precision), added, attended, false);
    ragged_attention_backward(of, kept.attended, attended, pass.layout);
  }
  unscored(pass, of.query, layer.query_norm, kept.query_norm);
  unscored(pass, of.key, layer.key_norm, kept.key_norm);
  const ReadGradient read = read_gradient(pass, grad);
  const auto through = [&](const Projection& projection, const at::Tensor& of_output, bool add) {
    add_gradients(projection, of_output, kept.read.in);
    project_back(projection, packed_transposed(projection.weight, pass.precision), of_output, read.out, add);
  };
  through(query_of(layer), of.query, read.add);
  through(key_of(layer), of.key, true);
  through(value_of(layer), of.value, true);
  finish_read_gradient(pass, pass.norm(layer.attention_norm, layer.attention_norm_bias), kept.read, read, grad);
}

}  // namespace sluice::models
