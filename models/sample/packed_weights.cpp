#include "models/sample/packed_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/adapters/lora.h"
#include "models/layers/feed_forward/feed_forward.h"
#include "models/layers/operand.h"
#include "models/layers/weight_names.h"
#include "models/portable/layer_maths.h"
#include "models/portable/product.h"

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

// Of an operand: rounded to the precision, or rounded already.
void copy_operand(const at::Tensor& from, Precision precision, at::Tensor& to) {
  if (!to.defined()) to = empty_operand(precision, from.sizes());
  SLUICE_CHECK(to.sizes() == from.sizes(), kOtherShape);
  to.copy_(from);
}

using Stack = std::vector<const LinearWeights*>;  // linear layers that read the same rows

std::array<Stack, 2> attention_stacks(const LayerWeights& layer) {
  return {Stack{&layer.query, &layer.key, &layer.value}, Stack{&layer.attention_output}};
}

std::vector<Stack> network_stacks(const LayerWeights& layer) {
  std::vector<Stack> stacks;
  for (const std::vector<size_t>& places : feed_forward_of(layer).stacks(layer.feed_forward.size())) {
    stacks.emplace_back();
    for (const size_t place : places) stacks.back().push_back(&layer.feed_forward[place]);
  }
  return stacks;
}

void pack_all(const LayerWeights& from, Precision precision, PackedLayer& to) {
  copy(from.attention_norm, to.attention_norm);
  copy(from.attention_norm_bias, to.attention_norm_bias);
  copy(from.attention_output_norm, to.attention_output_norm);
  copy(from.feed_forward_norm, to.feed_forward_norm);
  copy(from.feed_forward_norm_bias, to.feed_forward_norm_bias);
  copy(from.feed_forward_output_norm, to.feed_forward_output_norm);
  copy(from.query_norm, to.query_norm);
  copy(from.key_norm, to.key_norm);
  const auto [qkv, output] = attention_stacks(from);
  models::pack(qkv, precision, to.matrices.qkv);
  models::pack(output, precision, to.matrices.attention_output);
  const std::vector<Stack> stacks = network_stacks(from);
  to.matrices.feed_forward.resize(stacks.size());
  for (size_t i = 0; i < stacks.size(); ++i) models::pack(stacks[i], precision, to.matrices.feed_forward[i]);
}

// Whether each begins where the one before it ends.
bool lie_together(const std::vector<at::Tensor>& matrices) {
  const auto begin = [](const at::Tensor& matrix) { return static_cast<const char*>(matrix.const_data_ptr()); };
  for (size_t i = 1; i < matrices.size(); ++i)
    if (begin(matrices[i]) != begin(matrices[i - 1]) + matrices[i - 1].nbytes()) return false;
  return true;
}

// Lays matrices that read the same rows beside each other, one stack more at a time: so they can be one product.
void join(Weights& weights) {
  for (LayerWeights& layer : weights.layers) {
    std::vector<Stack> stacks = network_stacks(layer);
    stacks.push_back(attention_stacks(layer)[0]);
    for (const Stack& stack : stacks) {
      std::vector<LinearWeights*> together;
      std::vector<at::Tensor> matrices;
      for (LinearWeights* const linear : layer.linears()) {
        if (!linear->weight.defined() || std::ranges::find(stack, linear) == stack.end()) continue;
        together.push_back(linear);
        matrices.push_back(linear->weight);
      }
      if (together.size() < 2 || lie_together(matrices)) continue;
      const at::Tensor joined = at::cat(matrices);
      int64_t row = 0;
      for (LinearWeights* const linear : together) {
        linear->weight = joined.narrow(0, row, linear->weight.size(0));
        row += linear->weight.size(0);
      }
    }
  }
}

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

// Those of `places` that can be matrices of `weights`, with their values. Factors of adapters are no matrices of a version.
Tensors filled(Tensors places, const Weights& weights, Precision precision) {
  const Tensors named = without_adapters(weights).named();
  std::erase_if(places, [&](const auto& place) {
    const auto found = std::ranges::find(named, place.first, &Tensors::value_type::first);
    if (found == named.end() || place.second.scalar_type() != portable::dtype_of(precision)) return true;
    at::Tensor(place.second).copy_(found->second);
    return false;
  });
  return places;
}

// `copy`, with memory of its own where it shares that of `weights`.
Weights with_own_memory(const Weights& copy, const Weights& weights) {
  std::set<const void*> theirs;
  for (const auto& [name, tensor] : weights.named()) theirs.insert(tensor.const_data_ptr());
  Tensors own = copy.named();
  std::erase_if(own, [&](const auto& tensor) { return !theirs.contains(tensor.second.const_data_ptr()); });
  for (auto& [name, tensor] : own) tensor = tensor.clone();
  return copy.with(own);
}

using Shapes = std::map<const at::Tensor*, std::vector<int64_t>>;  // of fields

using Slots = std::set<const at::Tensor*>;

// `shared`: what is not copied.
int64_t stack_bytes(const Stack& stack, const Shapes& shapes, const Slots& shared, Precision precision) {
  if (std::ranges::any_of(stack, [&](const LinearWeights* linear) { return shared.contains(&linear->weight); })) return 0;
  int64_t outputs = 0, inputs = 0;
  for (const LinearWeights* linear : stack) {
    const auto shape = shapes.find(&linear->weight);
    if (shape == shapes.end()) continue;
    outputs += shape->second[0];
    inputs = shape->second[1];
  }
  return PackedMatrix::bytes_for(precision, outputs, inputs);
}

int64_t size_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Of all layers.
int64_t matrices_bytes(const Weights& weights, const Shapes& shapes, const Slots& shared, Precision precision) {
  int64_t bytes = 0;
  for (const LayerWeights& layer : weights.layers) {
    for (const Stack& stack : attention_stacks(layer)) bytes += stack_bytes(stack, shapes, shared, precision);
    for (const Stack& stack : network_stacks(layer)) bytes += stack_bytes(stack, shapes, shared, precision);
  }
  return bytes;
}

}  // namespace

void PackedWeights::pack(const Weights& weights) {
  const at::NoGradGuard no_gradient;
  const bool has_columns = weights.final_norm.defined();
  SLUICE_CHECK(weights.head.defined() || !has_columns, "a model without a language model head cannot be sampled from");
  if (has_columns && !weights.embedding.is_cpu()) return pack_on_device(weights);
  SLUICE_CHECK(head_.empty() || weights.head.is_same(weights.embedding) != embedding_.defined(), kOtherShape);
  pack_outside_layers(weights);
  for (size_t i = 0; i < weights.layers.size(); ++i) pack_layer(weights, i);
}

void PackedWeights::pack_layer(const Weights& weights, size_t layer) {
  const at::NoGradGuard no_gradient;
  layers_.resize(weights.layers.size());
  pack_all(weights.layers[layer], precision_, layers_[layer]);
}

void PackedWeights::pack_outside_layers(const Weights& weights) {
  const at::NoGradGuard no_gradient;
  const bool tied = weights.head.is_same(weights.embedding);
  if (weights.embedding.defined() && !tied) copy_operand(weights.embedding, precision_, embedding_);
  copy(weights.positions, positions_);
  copy(weights.final_norm, final_norm_);
  copy(weights.final_norm_bias, final_norm_bias_);
  if (!weights.head.defined()) return;
  if (head_.empty()) head_ = PackedMatrix(precision_, weights.head.size(0), weights.head.size(1));
  head_.put(0, weights.head);
}

void PackedWeights::place_layer(size_t layer, const Place& place) {
  PackedLayer& of = layers_[layer];
  std::vector<at::Tensor*> tensors{&of.attention_norm,
                                   &of.attention_norm_bias,
                                   &of.attention_output_norm,
                                   &of.feed_forward_norm,
                                   &of.feed_forward_norm_bias,
                                   &of.feed_forward_output_norm,
                                   &of.query_norm,
                                   &of.key_norm};
  std::vector<PackedLinear*> linears{&of.matrices.qkv, &of.matrices.attention_output};
  for (PackedLinear& linear : of.matrices.feed_forward) linears.push_back(&linear);
  for (PackedLinear* const linear : linears) tensors.insert(tensors.end(), {&linear->matrix.memory(), &linear->bias});
  for (at::Tensor* const tensor : tensors)
    if (tensor->defined()) *tensor = place(*tensor);
}

void PackedWeights::place_outside_layers(const Place& place) {
  for (at::Tensor* const tensor : {&embedding_, &positions_, &final_norm_, &final_norm_bias_, &head_.memory()})
    if (tensor->defined()) *tensor = place(*tensor);
}

void PackedWeights::embedding_row(int64_t token, float* to) const {
  SLUICE_CHECK(token >= 0 && token < head_.outputs(), "a token id outside the vocabulary");
  if (!embedding_.defined()) return head_.row(token, to);
  const int64_t size = embedding_.size(1);
  with_number(precision_, [&](auto number) {
    const auto* from = static_cast<const decltype(number)*>(embedding_.const_data_ptr()) + token * size;
    for (int64_t i = 0; i < size; ++i) to[i] = to_float(from[i]);
  });
}

void PackedWeights::pack_on_device(const Weights& weights) {
  if (on_device_.embedding.defined()) return portable::copy_operands(weights, on_device_);
  const Tensors placed = filled(std::exchange(places_, {}), weights, precision_);
  on_device_ = with_own_memory(portable::operand_copy(weights.with(placed), precision_), weights);
  join(on_device_);
  std::set<const void*> places;
  for (const auto& [name, tensor] : placed) places.insert(tensor.const_data_ptr());
  for (const auto& [name, tensor] : on_device_.named())
    if (places.contains(tensor.const_data_ptr())) written_.insert(tensor.const_data_ptr());
}

void PackedWeights::pack_unwritten(const Weights& weights) {
  SLUICE_CHECK(on_device_.embedding.defined(), "the first version is packed whole");
  portable::copy_trained_operands(weights, on_device_, written_);
}

Weights PackedWeights::for_passes() const {
  SLUICE_CHECK(!head_.empty(), "weights are packed before passes read them");
  Weights weights;
  weights.embedding = embedding_, weights.positions = positions_;
  weights.final_norm = final_norm_, weights.final_norm_bias = final_norm_bias_;
  weights.packed_head = std::make_shared<const PackedMatrix>(head_);
  for (const PackedLayer& from : layers_) {
    LayerWeights& layer = weights.layers.emplace_back();
    layer.attention_norm = from.attention_norm, layer.attention_norm_bias = from.attention_norm_bias;
    layer.attention_output_norm = from.attention_output_norm;
    layer.feed_forward_norm = from.feed_forward_norm, layer.feed_forward_norm_bias = from.feed_forward_norm_bias;
    layer.feed_forward_output_norm = from.feed_forward_output_norm;
    layer.query_norm = from.query_norm, layer.key_norm = from.key_norm;
    layer.packed = std::make_shared<const PackedMatrices>(from.matrices);
  }
  return weights;
}

int64_t PackedWeights::bytes() const {
  const auto of_all = [](std::initializer_list<at::Tensor> tensors) {
    int64_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
    return bytes;
  };
  int64_t bytes = of_all({embedding_, positions_, final_norm_, final_norm_bias_}) + head_.bytes();
  for (const PackedLayer& layer : layers_) {
    bytes += of_all({layer.attention_norm, layer.attention_norm_bias, layer.attention_output_norm, layer.feed_forward_norm,
                     layer.feed_forward_norm_bias, layer.feed_forward_output_norm, layer.query_norm, layer.key_norm});
    bytes += layer.matrices.qkv.bytes() + layer.matrices.attention_output.bytes();
    for (const PackedLinear& linear : layer.matrices.feed_forward) bytes += linear.bytes();
  }
  if (on_device_.embedding.defined()) {
    for (const auto& [name, tensor] : on_device_.named()) bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

int64_t PackedWeights::shared_bytes() const {
  int64_t bytes = 0;
  for (const PackedLayer& layer : layers_) {
    bytes += layer.matrices.qkv.matrix.shared_bytes() + layer.matrices.attention_output.matrix.shared_bytes();
    for (const PackedLinear& linear : layer.matrices.feed_forward) bytes += linear.matrix.shared_bytes();
  }
  return bytes;
}

// Norms, biases and learned positions as they are; the embedding, if it is not the head, and the products in the precision.
int64_t PackedWeights::bytes_for(const ModelConfig& config, Precision precision, const ColumnShare& share, bool quantised) {
  Weights shapes_only;
  Shapes shapes;
  const int64_t vocabulary = share.of(config.vocab_size).size();
  int64_t bytes = config.tied_embeddings ? 0 : vocabulary * config.hidden_size * bytes_of(precision);
  const auto weights = expected_weights(config, Head::kLanguageModel, shapes_only);
  Slots shared;
  std::map<const at::Tensor*, std::function<TokenRange(int64_t outputs)>> divided;
  for (const LayerWeights& layer : shapes_only.layers) {
    const FeedForward* const network = &feed_forward_of(layer);
    for (const LinearWeights* const linear : {&layer.query, &layer.key, &layer.value, &layer.attention_output})
      divided[&linear->weight] = divided[&linear->bias] = [&](int64_t outputs) { return share.of(outputs); };
    for (size_t i = 0, count = layer.feed_forward.size(); i < count; ++i) {
      const LinearWeights& linear = layer.feed_forward[i];
      divided[&linear.weight] = divided[&linear.bias] = [&share, network, i, count](int64_t outputs) {
        return network->outputs_of(i, count, outputs, share);
      };
    }
  }
  for (const ExpectedWeight& weight : weights) {
    std::vector<int64_t>& shape = shapes[weight.slot] = weight.shape;
    const auto part = divided.find(weight.slot);
    if (part != divided.end())
      shape[0] = part->second(shape[0]).size();
    else if (!share.has_columns())
      shape[0] = 0;
    if (quantised && weight.quantises) shared.insert(weight.slot);
    const bool is_float = shape.size() == 1 || weight.slot == &shapes_only.positions;
    if (is_float) bytes += size_of(shape) * static_cast<int64_t>(sizeof(float));
  }
  const int64_t of_head = PackedMatrix::bytes_for(precision, vocabulary, config.hidden_size);
  return bytes + of_head + matrices_bytes(shapes_only, shapes, shared, precision);
}

}  // namespace sluice::models
