#pragma once

#include <array>
#include <span>
#include <string_view>

#include "models/layers/weight_names.h"
#include "models/layers/weights.h"

namespace sluice::models {

enum class Dim { kNone, kVocab, kPositions, kHidden, kQuery, kKey, kHead, kOne };      // kQuery, kKey: all heads together
enum class When { kAlways, kQkvBias, kAttentionOutputBias, kUntiedHead, kValueHead };  // which models have the tensor

/// What is known of a tensor beside its name and field. Rows of the same name are parts of one tensor in the file, in the order
/// of its outputs, and adjacent.
struct WeightRow {
  Dim outputs;
  Dim inputs = Dim::kNone;  // kNone: a vector
  ExpectedWeight::Kind kind = ExpectedWeight::Kind::kMatrix;
  When when = When::kAlways;
  const char* part = nullptr;  // "query": which part of the tensor in the file; nullptr: all of it
  bool transposed = false;     // [inputs, outputs] in the file
};

struct LayerRow : WeightRow {
  const char* name;                               // after the prefix and the number of the layer
  at::Tensor LayerWeights::*field = nullptr;      // or
  LinearWeights LayerWeights::*linear = nullptr;  // its weight, or its bias where the row is one

  constexpr LayerRow(const char* of, at::Tensor LayerWeights::*to, WeightRow row) : WeightRow(row), name(of), field(to) {}
  constexpr LayerRow(const char* of, LinearWeights LayerWeights::*to, WeightRow row) : WeightRow(row), name(of), linear(to) {}
};

struct ModelRow : WeightRow {
  const char* name;
  at::Tensor Weights::*field;

  constexpr ModelRow(const char* of, at::Tensor Weights::*to, WeightRow row) : WeightRow(row), name(of), field(to) {}
};

/// The names of a family, but for those of its feed-forward networks (FeedForward::tensors), which are the last of a layer.
struct WeightTable {
  const char* family;
  std::string_view prefix;        // which some files leave away
  std::string_view layer_prefix;  // the number of the layer and "." follow
  std::span<const ModelRow> before;
  std::array<std::span<const LayerRow>, 3> layer;  // one after the other
  std::span<const ModelRow> after;
  std::span<const std::string_view> buffers;  // ends of the names of tensors that can be computed
};

/// The family whose names the weights of this model have.
std::string_view weight_names_of(const ModelConfig& config);

/// The table of a built-in family; that of the fields' own names for none.
const WeightTable& weight_table(std::string_view family);

}  // namespace sluice::models
