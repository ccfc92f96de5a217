#include "models/layers/attention_sublayer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "models/layers/adapter_products.h"
#include "models/layers/matrix_products.h"
#include "models/layers/operand.h"
#include "models/layers/packed_matrices.h"
#include "models/layers/projection.h"
#include "models/layers/ring_attention.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {
namespace {

int64_t queries_size(const ModelConfig& config) { return config.heads * config.head_dim; }
int64_t keys_size(const ModelConfig& config) { return config.kv_heads * config.head_dim; }

// Queries, keys and values of every token side by side.
TensorShape projected_shape(const PassShape& shape) {
  return {shape.tokens, queries_size(shape.config) + 2 * keys_size(shape.config), at::kFloat};
}

at::Tensor project_heads(const LayerPass& pass, const LayerWeights& layer, const at::Tensor& in) {
  if (layer.packed) {
    const at::Tensor out = allocated(projected_shape(pass.shape()));
    multiply(in, layer.packed->qkv.matrix, layer.packed->qkv.bias, out);
    return out;
  }
  const PackedMatrix matrix = packed({layer.query.weight, layer.key.weight, layer.value.weight}, pass.precision);
  at::Tensor bias;
  if (layer.query.bias.defined()) bias = at::cat({layer.query.bias, layer.key.bias, layer.value.bias});
  const at::Tensor out = allocated(projected_shape(pass.shape()));
  multiply(in, matrix, bias, out);
  int64_t first = 0;
  for (const LinearWeights* of : {&layer.query, &layer.key, &layer.value}) {
    if (of->adapter.defined()) add_adapter_output(out.narrow(1, first, of->weight.size(0)), in, of->adapter);
    first += of->weight.size(0);
  }
  return out;
}

// out (+)= what attention adds.
void project_attended(const LayerPass& pass, const LayerWeights& layer, const at::Tensor& attended, const at::Tensor& out,
                      bool add) {
  if (layer.packed) {
    const PackedLinear& output = layer.packed->attention_output;
    return multiply(attended, output.matrix, output.bias, out, add);
  }
  project(layer.attention_output, packed({layer.attention_output.weight}, pass.precision), attended, out, add);
}

// A row for each head, or one for all of a token: what QkNorm says.
at::Tensor normed_rows(const LayerPass& pass, const at::Tensor& x) {
  return pass.config.qk_norm == QkNorm::kHead ? x.view({-1, pass.config.head_dim}) : x;
}

// Queries or keys as scores take them.
at::Tensor scored(const LayerPass& pass, const at::Tensor& projected, const at::Tensor& norm_weight, int64_t rope,
                  KeptNorm& kept) {
  if (pass.config.qk_norm == QkNorm::kNone) return rotated(projected, pass.layout, pass.precision, rope);
  const at::Tensor rows = projected.contiguous(), out = at::empty(rows.sizes());
  norm_forward(pass.norm(norm_weight), normed_rows(pass, rows), normed_rows(pass, out), kept);
  kept.x = to_operand(kept.x, pass.precision);
  return rotated(out, pass.layout, pass.precision, rope);
}

void unscored(const LayerPass& pass, const at::Tensor& grad, const at::Tensor& norm_weight, const KeptNorm& kept) {
  if (pass.config.qk_norm == QkNorm::kNone) return;
  const at::Tensor rows = normed_rows(pass, grad);
  norm_backward(pass.norm(norm_weight), kept, rows, rows, false);
}

// Of the rows of this rank, before queries and keys were rotated.
struct HeadGradients {
  at::Tensor query, key, value;
};

HeadGradients gradients_of_heads(const LayerPass& pass, const LayerWeights& layer, const KeptAttention& kept,
                                 const at::Tensor& grad) {
  const Segment& segment = pass.layout.segment;
  const AttentionOperands& of = kept.operands;  // which become their gradients
  {
    const at::Tensor added = added_gradient(pass, pass.norm(layer.attention_output_norm), kept.added_norm, grad);
    add_gradients(layer.attention_output, added, kept.attended.output);
    const at::Tensor attended = empty_operand(pass.precision, kept.attended.output.sizes());
    project_back(layer.attention_output, packed_transposed(layer.attention_output.weight, pass.precision), added, attended,
                 false);
    const std::vector<at::Tensor> heads = heads_of(segment, {attended, kept.attended.output});
    ring_attention_backward(of, {heads[1], kept.attended.log_sum_exp}, heads[0], pass.layout);
  }
  const std::vector<at::Tensor> rows = rows_of(segment, {of.query, of.key, of.value});
  return {rows[0], rows[1], rows[2]};
}

}  // namespace

at::Tensor attention(const LayerPass& pass, const LayerWeights& layer, int64_t index, const at::Tensor& x, KeptAttention& kept) {
  kept.read = read_residual(pass, x, pass.norm(layer.attention_norm, layer.attention_norm_bias));
  {
    const at::Tensor all = project_heads(pass, layer, kept.read.in);
    const int64_t queries = queries_size(pass.config), keys = keys_size(pass.config), rope = pass.config.rope_index(index);
    const std::vector<at::Tensor> heads =
        heads_of(pass.layout.segment, {scored(pass, all.narrow(1, 0, queries), layer.query_norm, rope, kept.query_norm),
                                       scored(pass, all.narrow(1, queries, keys), layer.key_norm, rope, kept.key_norm),
                                       to_operand(all.narrow(1, queries + keys, keys), pass.precision).contiguous()});
    kept.operands = {.query = heads[0], .key = heads[1], .value = heads[2], .window = pass.config.window_of(index), .rope = rope};
  }
  kept.attended = ring_attention(kept.operands, pass.layout);
  kept.attended.output = rows_of(pass.layout.segment, {kept.attended.output}).front();
  const at::Tensor out = pass.shape().adds_normed() ? at::empty_like(x) : x.clone(at::MemoryFormat::Contiguous);
  project_attended(pass, layer, kept.attended.output, out, !pass.shape().adds_normed());
  return pass.shape().adds_normed() ? add_normed(x, out, pass.norm(layer.attention_output_norm), kept.added_norm) : out;
}

void attention_backward(const LayerPass& pass, const LayerWeights& layer, const KeptAttention& kept, const at::Tensor& grad) {
  const HeadGradients of = gradients_of_heads(pass, layer, kept, grad);
  unscored(pass, of.query, layer.query_norm, kept.query_norm);
  unscored(pass, of.key, layer.key_norm, kept.key_norm);
  const ReadGradient read = read_gradient(pass, grad);
  const auto through = [&](const LinearWeights& projection, const at::Tensor& of_output, bool add) {
    add_gradients(projection, of_output, kept.read.in);
    project_back(projection, packed_transposed(projection.weight, pass.precision), of_output, read.out, add);
  };
  through(layer.query, of.query, read.add);
  through(layer.key, of.key, true);
  through(layer.value, of.value, true);
  finish_read_gradient(pass, pass.norm(layer.attention_norm, layer.attention_norm_bias), kept.read, read, grad);
}

SublayerBytes attention_bytes(const PassShape& shape) {
  const ModelConfig& config = shape.config;
  const int64_t T = shape.tokens, H = config.hidden_size, Q = queries_size(config), K = keys_size(config);
  const bool normed = config.qk_norm != QkNorm::kNone;
  const int64_t norm_rows = config.qk_norm == QkNorm::kHead ? T * config.heads : T;
  const int64_t key_rows = config.qk_norm == QkNorm::kHead ? T * config.kv_heads : T;
  const auto operand = [&](int64_t size) { return operand_shape(shape.precision, T, size).bytes(); };
  const auto wide = [&](int64_t size) { return TensorShape{T, size}.bytes(); };
  const auto packed = [&](int64_t outputs, int64_t inputs) { return PackedMatrix::bytes_for(shape.precision, outputs, inputs); };
  // With other ranks of a block: the same once more, as rows or as heads.
  const auto exchanged = [&](int64_t size) { return if_there(shape.ranks > shape.ring, operand(size)); };
  const PartBytes ring = ring_attention_bytes(shape);

  const int64_t norms = if_there(normed, operand(Q) + operand(K) + norm_statistics_bytes(config.norm, norm_rows + key_rows));
  const int64_t heads = norms + operand(Q) + 2 * operand(K) + operand(Q) + wide(config.heads);  // operands, what was attended
  const int64_t read = read_bytes(shape), added = added_bytes(shape);
  // Queries under way are in float32, as they were projected and as they are normed.
  const int64_t under_way =
      operand(Q) + 2 * operand(K) + exchanged(Q + 2 * K) + if_there(normed, wide(Q) + wide(K) + wide(std::max(Q, K)));
  const int64_t projecting = projected_shape(shape).bytes() + std::max(packed(Q + 2 * K, H), under_way);
  const int64_t adding = heads + std::max({shape.stream_bytes() + packed(H, Q) + added, exchanged(Q), ring.forward});

  const int64_t output = added_gradient_bytes(shape) + operand(Q) + std::max(packed(Q, H), exchanged(2 * Q) + ring.backward);
  const int64_t of_heads =
      if_there(normed, norm_backward_bytes(config.norm, norm_rows, config.qk_norm == QkNorm::kHead ? config.head_dim : Q));
  const int64_t projections = exchanged(Q + 2 * K) + read_gradient_bytes(shape) +
                              std::max(packed(H, std::max(Q, K)), norm_backward_bytes(config.norm, T, H));
  const int64_t forward = read + std::max(projecting, adding);
  return {.kept = read + heads + added,
          .keeping = forward,
          .forward = forward,
          .backward = std::max({output, of_heads, projections})};
}

int64_t attention_adapter_bytes(const PassShape& shape) {
  return widened_bytes(shape.precision, shape.tokens, shape.config.hidden_size + queries_size(shape.config));
}

}  // namespace sluice::models
