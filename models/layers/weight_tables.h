#pragma once

#include <array>
#include <span>
#include <string_view>

#include "models/layers/weight_names.h"
#include "models/layers/weights.h"

namespace sluice::models {

enum class Dim {
  kNone,
  kVocab,
  kPositions,
  kHidden,
  kQuery,
  kKey,
  kHead,
  kIntermediate,
  kOne
};  // kQuery, kKey: all heads together
enum class When { kAlways, kQkvBias, kAttentionOutputBias, kMlpBias, kUntiedHead, kValueHead };  // which models have the tensor

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
  const char* name;  // behind the prefix and the number of the layer
  at::Tensor LayerWeights::*field;

  constexpr LayerRow(const char* of, at::Tensor LayerWeights::*to, WeightRow row) : WeightRow(row), name(of), field(to) {}
};

struct ModelRow : WeightRow {
  const char* name;
  at::Tensor Weights::*field;

  constexpr ModelRow(const char* of, at::Tensor Weights::*to, WeightRow row) : WeightRow(row), name(of), field(to) {}
};

/// The names of a family. A new family is a new one of these.
struct WeightTable {
  const char* model_type;
  std::string_view prefix;        // which some files leave away
  std::string_view layer_prefix;  // the number of the layer and "." follow
  std::span<const ModelRow> before;
  std::array<std::span<const LayerRow>, 4> layer;  // one after the other
  std::span<const ModelRow> after;
  std::span<const std::string_view> buffers;  // ends of the names of tensors that can be computed
};

/// The table of a family that read_config knows; that of the fields' own names for none.
const WeightTable& weight_table(std::string_view model_type);

}  // namespace sluice::models
