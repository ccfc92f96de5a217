#include "models/training/attention_half.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "models/training/gradient.h"
#include "models/training/matrix_products.h"
#include "models/training/operand.h"

namespace sluice::models {
namespace {

// Queries, keys and values of every token side by side, float32: [T, (Nq + 2 Nk) D]
at::Tensor project(const LayerPass& pass, const LayerWeights& layer, const at::Tensor& in) {
  const PackedMatrix matrix = packed({layer.query, layer.key, layer.value}, pass.precision);
  at::Tensor bias;
  if (layer.query_bias.defined()) bias = at::cat({layer.query_bias, layer.key_bias, layer.value_bias});
  const at::Tensor out = at::empty({in.size(0), matrix.outputs()});
  multiply(in, matrix, bias, out);
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
    const at::Tensor all = project(pass, layer, kept.read.in);
    const int64_t queries = layer.query.size(0), keys = layer.key.size(0);
    kept.operands = {.query = scored(pass, all.narrow(1, 0, queries), layer.query_norm, kept.query_norm),
                     .key = scored(pass, all.narrow(1, queries, keys), layer.key_norm, kept.key_norm),
                     .value = to_operand(all.narrow(1, queries + keys, keys), pass.precision).contiguous(),
                     .window = window};
  }
  kept.attended = ragged_attention(kept.operands, pass.layout);
  const at::Tensor &weight = layer.attention_output, &bias = layer.attention_output_bias;
  if (!pass.adds_normed()) return layer_output(kept.attended.output, weight, bias, x);
  return add_normed(x, layer_output(kept.attended.output, weight, bias), pass.norm(layer.attention_output_norm), kept.added_norm);
}

void attention_backward(const LayerPass& pass, const LayerWeights& layer, const KeptAttention& kept, const at::Tensor& grad) {
  const AttentionOperands& of = kept.operands;
  {
    const at::Tensor added = added_gradient(pass, pass.norm(layer.attention_output_norm), kept.added_norm, grad);
    add_bias_gradient(gradient_of(layer.attention_output_bias), added);
    add_weight_gradient(gradient_of(layer.attention_output), added, kept.attended.output);
    const at::Tensor attended = empty_operand(pass.precision, of.query.sizes());
    multiply(added, packed_transposed(layer.attention_output, pass.precision), {}, attended);
    ragged_attention_backward(of, kept.attended, attended, pass.layout);
  }
  unscored(pass, of.query, layer.query_norm, kept.query_norm);
  unscored(pass, of.key, layer.key_norm, kept.key_norm);
  const ReadGradient read = read_gradient(pass, grad);
  const auto through = [&](const at::Tensor& of_output, const at::Tensor& weight, const at::Tensor& bias, bool add) {
    add_bias_gradient(gradient_of(bias), of_output);
    add_weight_gradient(gradient_of(weight), of_output, kept.read.in);
    multiply(of_output, packed_transposed(weight, pass.precision), {}, read.out, add);
  };
  through(of.query, layer.query, layer.query_bias, read.add);
  through(of.key, layer.key, layer.key_bias, true);
  through(of.value, layer.value, layer.value_bias, true);
  finish_read_gradient(pass, pass.norm(layer.attention_norm, layer.attention_norm_bias), kept.read, read, grad);
}

}  // namespace sluice::models
