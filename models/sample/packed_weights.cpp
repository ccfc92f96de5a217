#include "models/sample/packed_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <initializer_list>

#include "base/error.h"
#include "models/layers/adapter_products.h"
#include "models/layers/weight_names.h"
#include "models/portable/layer_maths.h"

namespace sluice::models {
namespace {

constexpr const char* kOtherShape = "weights of another shape are packed into the memory of these";

const float* floats(const at::Tensor& tensor) {
  SLUICE_CHECK(tensor.defined() && tensor.scalar_type() == at::kFloat && tensor.is_cpu() && tensor.is_contiguous(),
               "generation needs contiguous float32 weights on the CPU");
  return tensor.const_data_ptr<float>();
}

// Undefined stays undefined.
void copy(const at::Tensor& from, at::Tensor& to) {
  if (!from.defined()) return;
  floats(from);
  if (!to.defined()) to = at::empty(from.sizes(), at::kFloat);
  SLUICE_CHECK(to.sizes() == from.sizes(), kOtherShape);
  to.copy_(from);
}

struct Part {
  const at::Tensor &weight, &bias;
  const Adapter& adapter;
};

// Puts weights that read the same rows behind each other; a part that a family does not have is undefined.
void stack(std::initializer_list<Part> parts, Precision precision, PackedLinear& to) {
  int64_t outputs = 0, inputs = 0;
  bool biased = false;
  for (const Part& part : parts) {
    if (!part.weight.defined()) continue;
    outputs += part.weight.size(0);
    inputs = part.weight.size(1);
    biased = part.bias.defined();
  }
  if (to.matrix.empty()) to.matrix = PackedMatrix(precision, outputs, inputs);
  if (biased && !to.bias.defined()) to.bias = at::empty({outputs}, at::kFloat);
  SLUICE_CHECK(to.matrix.outputs() == outputs && to.matrix.inputs() == inputs && to.bias.defined() == biased, kOtherShape);
  int64_t next = 0;
  for (const Part& part : parts) {
    if (!part.weight.defined()) continue;
    const int64_t count = part.weight.size(0);
    to.matrix.put(next, merged_matrix(part.weight, part.adapter));
    if (biased) to.bias.narrow(0, next, count).copy_(part.bias);
    next += count;
  }
}

void pack_layer(const LayerWeights& from, Precision precision, PackedLayer& to) {
  copy(from.attention_norm, to.attention_norm);
  copy(from.attention_norm_bias, to.attention_norm_bias);
  copy(from.attention_output_norm, to.attention_output_norm);
  copy(from.mlp_norm, to.mlp_norm);
  copy(from.mlp_norm_bias, to.mlp_norm_bias);
  copy(from.mlp_output_norm, to.mlp_output_norm);
  copy(from.query_norm, to.query_norm);
  copy(from.key_norm, to.key_norm);
  const LayerAdapters& adapters = from.adapters;
  stack({{from.query, from.query_bias, adapters.query},
         {from.key, from.key_bias, adapters.key},
         {from.value, from.value_bias, adapters.value}},
        precision, to.qkv);
  stack({{from.attention_output, from.attention_output_bias, adapters.attention_output}}, precision, to.attention_output);
  stack({{from.gate, from.gate_bias, adapters.gate}, {from.up, from.up_bias, adapters.up}}, precision, to.gate_up);
  stack({{from.down, from.down_bias, adapters.down}}, precision, to.down);
}

int64_t matrix_bytes(Precision precision, int64_t outputs, int64_t inputs) {
  const int64_t panels = (outputs + PackedMatrix::kWidth - 1) / PackedMatrix::kWidth;
  const int64_t stored_inputs = precision == Precision::kBfloat16 ? inputs + inputs % 2 : inputs;
  return panels * PackedMatrix::kWidth * stored_inputs * bytes_of(precision);
}

int64_t matrices_bytes(const ModelConfig& c, Precision precision) {
  const int64_t hidden = c.hidden_size, inner = c.intermediate_size, queries = c.heads * c.head_dim;
  const int64_t of_layer =
      matrix_bytes(precision, queries + 2 * c.kv_heads * c.head_dim, hidden) + matrix_bytes(precision, hidden, queries) +
      matrix_bytes(precision, c.gated_mlp ? 2 * inner : inner, hidden) + matrix_bytes(precision, hidden, inner);
  return c.layers * of_layer + matrix_bytes(precision, c.vocab_size, hidden);
}

}  // namespace

void PackedWeights::pack(const Weights& weights) {
  const at::NoGradGuard no_gradient;
  SLUICE_CHECK(weights.head.defined(), "a model without a language model head cannot be sampled from");
  if (!weights.embedding.is_cpu()) return pack_on_device(weights);
  layers_.resize(weights.layers.size());
  copy(weights.embedding, embedding_);
  copy(weights.positions, positions_);
  for (size_t i = 0; i < layers_.size(); ++i) pack_layer(weights.layers[i], precision_, layers_[i]);
  copy(weights.final_norm, final_norm_);
  copy(weights.final_norm_bias, final_norm_bias_);
  if (head_.empty()) head_ = PackedMatrix(precision_, weights.head.size(0), weights.head.size(1));
  head_.put(0, weights.head);
}

void PackedWeights::pack_on_device(const Weights& weights) {
  if (on_device_.embedding.defined())
    on_device_.copy_from(weights);  // rounds
  else
    on_device_ = portable::operand_copy(weights, precision_).clone();
}

int64_t PackedWeights::bytes() const {
  const auto of_all = [](std::initializer_list<at::Tensor> tensors) {
    int64_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
    return bytes;
  };
  int64_t bytes = of_all({embedding_, positions_, final_norm_, final_norm_bias_}) + head_.bytes();
  for (const PackedLayer& layer : layers_) {
    bytes += of_all({layer.attention_norm, layer.attention_norm_bias, layer.attention_output_norm, layer.mlp_norm,
                     layer.mlp_norm_bias, layer.mlp_output_norm, layer.query_norm, layer.key_norm});
    for (const PackedLinear* linear : {&layer.qkv, &layer.attention_output, &layer.gate_up, &layer.down})
      bytes += linear->matrix.bytes() + of_all({linear->bias});
  }
  if (on_device_.embedding.defined()) {
    for (const auto& [name, tensor] : on_device_.named()) bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

// Norms, biases and embeddings as they are; the products packed.
int64_t PackedWeights::bytes_for(const ModelConfig& config, Precision precision) {
  Weights shapes_only;
  int64_t floats = 0;
  for (const ExpectedWeight& weight : expected_weights(config, Head::kLanguageModel, shapes_only)) {
    const bool table = weight.slot == &shapes_only.embedding || weight.slot == &shapes_only.positions;
    if (weight.shape.size() > 1 && !table) continue;
    int64_t count = 1;
    for (const int64_t size : weight.shape) count *= size;
    floats += count;
  }
  return floats * static_cast<int64_t>(sizeof(float)) + matrices_bytes(config, precision);
}

}  // namespace sluice::models
