#include "models/layers/weight_names.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/error.h"
#include "models/config/config_families.h"
#include "models/layers/weight_tables.h"

namespace sluice::models {
namespace {

using Kind = ExpectedWeight::Kind;

std::string layer_name(std::string_view prefix, size_t layer, std::string_view name) {
  return std::string(prefix) + std::to_string(layer) + "." + std::string(name);
}

std::string part_name(const std::string& stored, const WeightRow& row) {
  return row.part == nullptr ? stored : stored + "[" + row.part + "]";
}

// Calls visit(name in the file, field, row) for every row of the family. `W` is Weights or const Weights.
template <class W, class Visit>
void visit_weights(W& weights, const Visit& visit) {
  const WeightTable& table = weight_table(weights.model_type);
  for (const ModelRow& row : table.before) visit(row.name, weights.*row.field, row);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    for (const std::span<const LayerRow> rows : table.layer) {
      for (const LayerRow& row : rows) visit(layer_name(table.layer_prefix, i, row.name), weights.layers[i].*row.field, row);
    }
  }
  for (const ModelRow& row : table.after) visit(row.name, weights.*row.field, row);
}

template <class Tensor, class W>
std::vector<std::pair<std::string, Tensor*>> slots_of(W& weights) {
  std::vector<std::pair<std::string, Tensor*>> slots;
  visit_weights(weights, [&](const std::string& stored, Tensor& tensor, const WeightRow& row) {
    slots.emplace_back(part_name(stored, row), &tensor);
  });
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
    case Dim::kIntermediate:
      return config.intermediate_size;
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
    case When::kMlpBias:
      return config.mlp_bias;
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
  visit_weights(weights, [&](const std::string& stored, const at::Tensor& tensor, const WeightRow& row) {
    if (slots.empty() || slots.back().name != stored)
      slots.push_back({.name = stored, .parts = {}, .transposed = row.transposed});
    slots.back().parts.push_back(&tensor);
  });
  return slots;
}

std::vector<ExpectedWeight> expected_weights(const ModelConfig& config, Head head, Weights& weights) {
  weights.model_type = config.model_type;
  weights.layers.resize(static_cast<size_t>(config.layers));
  std::vector<ExpectedWeight> expected;
  visit_weights(weights, [&](const std::string& stored, at::Tensor& tensor, const WeightRow& row) {
    if (!is_present(row.when, config, head)) return;
    expected.push_back({.name = part_name(stored, row),
                        .slot = &tensor,
                        .shape = shape_of(row, config),
                        .kind = row.kind,
                        .stored = {.name = stored, .transposed = row.transposed, .first_output = 0, .shape = {}}});
  });
  join_parts(expected);
  return expected;
}

bool is_for_products(const ExpectedWeight& weight, const Weights& weights) {
  if (weight.kind == ExpectedWeight::Kind::kHead) return true;
  return weight.kind == ExpectedWeight::Kind::kMatrix && weight.slot != &weights.embedding && weight.slot != &weights.positions;
}

std::string without_prefix(const std::string& name, const ModelConfig& config) {
  const std::string_view prefix = weight_table(config.model_type).prefix;
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

bool is_ignorable_weight(const std::string& name, const ModelConfig& config, Head head) {
  if (name == "lm_head.weight") return config.tied_embeddings || !has_language_head(head);
  if (name == "score.weight") return config.architecture == family_of(config.model_type).language_class;
  const auto buffers = weight_table(config.model_type).buffers;
  return std::any_of(buffers.begin(), buffers.end(), [&](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace sluice::models
