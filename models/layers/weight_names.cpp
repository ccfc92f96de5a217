#include "models/layers/weight_names.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "models/config/config_families.h"
#include "models/layers/feed_forward/mlp.h"
#include "models/layers/weight_tables.h"

namespace sluice::models {
namespace {

using Kind = ExpectedWeight::Kind;

/// What is known of a tensor beside its field: a row of the family's table, or of its feed-forward networks.
struct Slot {
  std::string stored;  // the name in the file
  std::string_view part;
  bool transposed;
  const WeightRow* row;
  const NetworkTensor* of_network;
  int64_t layer = -1;  // -1: outside of the layers

  std::string name() const { return part.empty() ? stored : stored + "[" + std::string(part) + "]"; }
};

Slot slot_of(std::string stored, const WeightRow& row, int64_t layer = -1) {
  return {std::move(stored), row.part == nullptr ? "" : row.part, row.transposed, &row, nullptr, layer};
}

template <class Layer>
auto& field_of(Layer& layer, const LayerRow& row) {
  if (row.linear == nullptr) return layer.*row.field;
  return row.kind == Kind::kBias ? (layer.*row.linear).bias : (layer.*row.linear).weight;
}

template <class Layer, class Visit>
void visit_network(Layer& layer, int64_t index, const std::string& prefix, std::span<const NetworkTensor> tensors,
                   const Visit& visit) {
  for (const NetworkTensor& tensor : tensors) {
    if (tensor.linear >= layer.feed_forward.size()) continue;
    auto& linear = layer.feed_forward[tensor.linear];
    visit(tensor.bias ? linear.bias : linear.weight,
          Slot{prefix + tensor.name, tensor.part, tensor.transposed, nullptr, &tensor, index});
  }
}

// Calls visit(field, slot) for every row of the family. `W` is Weights or const Weights.
template <class W, class Visit>
void visit_weights(W& weights, const Visit& visit) {
  const WeightTable& table = weight_table(weights.names_of);
  const std::vector<NetworkTensor> of_mlp = mlp_names(weights.names_of);
  for (const ModelRow& row : table.before) visit(weights.*row.field, slot_of(row.name, row));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const std::string prefix = std::string(table.layer_prefix) + std::to_string(i) + ".";
    for (const std::span<const LayerRow> rows : table.layer) {
      for (const LayerRow& row : rows)
        visit(field_of(weights.layers[i], row), slot_of(prefix + row.name, row, static_cast<int64_t>(i)));
    }
    const auto& network = weights.layers[i].network;
    visit_network(weights.layers[i], static_cast<int64_t>(i), prefix, network ? network->tensors : of_mlp, visit);
  }
  for (const ModelRow& row : table.after) visit(weights.*row.field, slot_of(row.name, row));
}

template <class Tensor, class W>
std::vector<std::pair<std::string, Tensor*>> slots_of(W& weights) {
  std::vector<std::pair<std::string, Tensor*>> slots;
  visit_weights(weights, [&](Tensor& tensor, const Slot& slot) { slots.emplace_back(slot.name(), &tensor); });
  return slots;
}

int64_t size_of(Dim dim, const ModelConfig& config) {
  switch (dim) {
    case Dim::kNone:
      break;
    case Dim::kVocab:
      return config.vocab_size;
    case Dim::kPositions:
      return config.max_positions;
    case Dim::kHidden:
      return config.hidden_size;
    case Dim::kQuery:
      return config.heads * config.head_dim;
    case Dim::kKey:
      return config.kv_heads * config.head_dim;
    case Dim::kHead:
      return config.head_dim;
    case Dim::kOne:
      return 1;
  }
  throw InternalError("unknown dimension");
}

bool is_present(When when, const ModelConfig& config, Head head) {
  switch (when) {
    case When::kAlways:
      return true;
    case When::kQkvBias:
      return config.qkv_bias;
    case When::kAttentionOutputBias:
      return config.attention_output_bias;
    case When::kUntiedHead:
      return has_language_head(head) && !config.tied_embeddings;
    case When::kValueHead:
      return has_value_head(head);
  }
  throw InternalError("unknown condition");
}

std::vector<int64_t> shape_of(const WeightRow& row, const ModelConfig& config) {
  std::vector<int64_t> shape{size_of(row.outputs, config)};
  if (row.inputs != Dim::kNone) shape.push_back(size_of(row.inputs, config));
  return shape;
}

ExpectedWeight expected_weight(at::Tensor& field, const Slot& slot, const ModelConfig& config) {
  ExpectedWeight weight{.name = slot.name(),
                        .slot = &field,
                        .shape = {},
                        .kind = Kind::kMatrix,
                        .stored = {.name = slot.stored, .transposed = slot.transposed, .first_output = 0, .shape = {}},
                        .layer = slot.layer};
  if (slot.row != nullptr) {
    weight.shape = shape_of(*slot.row, config), weight.kind = slot.row->kind;
  } else {
    weight.shape = slot.of_network->shape, weight.kind = slot.of_network->bias ? Kind::kBias : Kind::kMatrix;
    weight.adapts = slot.of_network->adapts;
  }
  weight.quantises =
      weight.layer >= 0 && weight.kind == Kind::kMatrix && (slot.of_network == nullptr || slot.of_network->quantises);
  return weight;
}

// Gives the layers room for their weights.
void lay_out(const ModelConfig& config, Weights& weights) {
  weights.names_of = weight_names_of(config);
  weights.layers.resize(static_cast<size_t>(config.layers));
  std::map<const FeedForward*, std::shared_ptr<const Network>> networks;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const FeedForward& kind = feed_forward_of(config, static_cast<int64_t>(i));
    std::shared_ptr<const Network>& network = networks[&kind];
    if (!network) network = std::make_shared<const Network>(Network{&kind, kind.tensors(config)});
    size_t linears = 0;
    for (const NetworkTensor& tensor : network->tensors) linears = std::max(linears, tensor.linear + 1);
    weights.layers[i].network = network;
    weights.layers[i].feed_forward.resize(linears);
  }
}

// The parts of one tensor follow each other: its outputs are theirs together.
void join_parts(std::vector<ExpectedWeight>& expected) {
  for (size_t begin = 0, end = 0; begin < expected.size(); begin = end) {
    int64_t outputs = 0;
    for (end = begin; end < expected.size() && expected[end].stored.name == expected[begin].stored.name; ++end) {
      expected[end].stored.first_output = outputs;
      outputs += expected[end].shape[0];
    }
    for (size_t i = begin; i < end; ++i) {
      StoredWeight& stored = expected[i].stored;
      stored.shape = expected[i].shape;
      stored.shape[0] = outputs;
      if (stored.transposed) std::reverse(stored.shape.begin(), stored.shape.end());
    }
  }
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor*>> weight_slots(Weights& weights) { return slots_of<at::Tensor>(weights); }

std::vector<std::pair<std::string, const at::Tensor*>> weight_slots(const Weights& weights) {
  return slots_of<const at::Tensor>(weights);
}

std::vector<StoredSlot> stored_slots(const Weights& weights) {
  std::vector<StoredSlot> slots;
  visit_weights(weights, [&](const at::Tensor& tensor, const Slot& slot) {
    if (slots.empty() || slots.back().name != slot.stored)
      slots.push_back({.name = slot.stored, .parts = {}, .transposed = slot.transposed});
    slots.back().parts.push_back(&tensor);
  });
  return slots;
}

std::vector<ExpectedWeight> expected_weights(const ModelConfig& config, Head head, Weights& weights) {
  lay_out(config, weights);
  std::vector<ExpectedWeight> expected;
  visit_weights(weights, [&](at::Tensor& field, const Slot& slot) {
    if (slot.row == nullptr || is_present(slot.row->when, config, head)) expected.push_back(expected_weight(field, slot, config));
  });
  join_parts(expected);
  return expected;
}

bool is_operand(const ExpectedWeight& weight, const Weights& weights) {
  return weight.kind == Kind::kHead || (weight.kind == Kind::kMatrix && weight.slot != &weights.positions);
}

std::string without_prefix(const std::string& name, const ModelConfig& config) {
  const std::string_view prefix = weight_table(weight_names_of(config)).prefix;
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

bool is_ignorable_weight(const std::string& name, const ModelConfig& config, Head head) {
  if (name == "lm_head.weight") return config.tied_embeddings || !has_language_head(head);
  if (name == "score.weight") return config.family != nullptr && config.architecture == config.family->language_class;
  const auto buffers = weight_table(weight_names_of(config)).buffers;
  return std::any_of(buffers.begin(), buffers.end(), [&](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace sluice::models
