#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/kernels/packed_matrix.h"
#include "models/layers/column_share.h"
#include "models/layers/packed_matrices.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// Of one decoder layer. Norms are float32, undefined where the family has none.
struct PackedLayer {
  at::Tensor attention_norm, attention_norm_bias, attention_output_norm;           // [H]
  at::Tensor feed_forward_norm, feed_forward_norm_bias, feed_forward_output_norm;  // [H]
  at::Tensor query_norm, key_norm;                                                 // see LayerWeights
  PackedMatrices matrices;
};

/// All that generation reads of a model, laid out as it reads it: a published version is one of these and nothing else. Matrices
/// and the embedding in `precision`; norms, biases and learned positions float32. Training rounds likewise, so both begin from
/// the same hidden states. A tied embedding is the head: its rows are read out of the packed matrix.
///
/// Matrices that are quantised stay so and are shared with the weights that were packed, and their adapters stay apart
/// (packed_linear.h).
///
/// Of a model that is not on the CPU it has one thing only: on_device().
///
/// Owns its memory. Movable. Not thread-safe while pack() runs, which may use ATen's threads.
class PackedWeights {
 public:
  /// Without values and without memory until the first pack().
  explicit PackedWeights(Precision precision) : precision_(precision) {}

  explicit PackedWeights(const Weights& weights, Precision precision = Precision::kFloat32) : PackedWeights(precision) {
    pack(weights);
  }

  /// Copies the values of `weights`, which have a language model head, or are a part without columns (part_of()), and are
  /// contiguous and float32; for Precision::kBfloat16 those that are operands (is_operand()) may be bfloat16 (InternalError
  /// otherwise). The first call allocates; those after it are of weights of the same shape and use the same memory.
  void pack(const Weights& weights);

  /// Before the first pack(), of a model that is not on the CPU: a matrix lies where a tensor of its name does among `places`, if
  /// that has its type, and matrices that are read together lie beside each other there, too. Somebody else writes what is there
  /// from then on: pack_unwritten() is a pack() of what else is trained.
  void place_on_device(std::vector<std::pair<std::string, at::Tensor>> places) { places_ = std::move(places); }
  void pack_unwritten(const Weights& weights);

  /// How many matrices lie where they were placed.
  size_t written() const { return written_.size(); }

  /// The parts of pack(), for who has not all weights at a time (load_packed.h), on the CPU: one layer; and what there is of the
  /// others. pack() is every layer, and once all others.
  void pack_layer(const Weights& weights, size_t layer);
  void pack_outside_layers(const Weights& weights);

  /// Gives each tensor of a layer, or of what is outside of layers, another place: place() returns one of the same shape and
  /// dtype, with its values or without. What is packed later goes there.
  using Place = std::function<at::Tensor(const at::Tensor& tensor)>;
  void place_layer(size_t layer, const Place& place);
  void place_outside_layers(const Place& place);

  bool empty() const { return layers_.empty() && !on_device_.embedding.defined(); }

  /// As portable::operand_copy() has them, on the device of what was packed; without tensors if that is the CPU.
  const Weights& on_device() const { return on_device_; }

  /// The same weights for passes without gradient, in the same memory: it stays as long as either does. Once packed, on the CPU.
  Weights for_passes() const;

  /// What it holds, and what it shares: quantised matrices, of the weights that were packed.
  int64_t bytes() const;
  int64_t shared_bytes() const;

  /// What a model of this shape takes, or the part of it that part_of() gives a rank; of a quantised one without what it shares
  /// and without adapters.
  static int64_t bytes_for(const ModelConfig& config, Precision precision, const ColumnShare& share = {}, bool quantised = false);

  Precision precision() const { return precision_; }

  /// to[H] becomes the row of the embedding of this token. Throws InternalError for one outside the vocabulary.
  void embedding_row(int64_t token, float* to) const;

  const at::Tensor& positions() const { return positions_; }  // [max_positions,H], or undefined
  const std::vector<PackedLayer>& layers() const { return layers_; }
  const at::Tensor& final_norm() const { return final_norm_; }  // [H]
  const at::Tensor& final_norm_bias() const { return final_norm_bias_; }
  const PackedMatrix& head() const { return head_; }  // [V,H]

 private:
  void pack_on_device(const Weights& weights);

  Precision precision_;
  at::Tensor embedding_;  // [V,H], an operand; undefined if it is tied
  at::Tensor positions_;
  std::vector<PackedLayer> layers_;
  at::Tensor final_norm_, final_norm_bias_;
  PackedMatrix head_;
  Weights on_device_;
  std::vector<std::pair<std::string, at::Tensor>> places_;  // until the first pack()
  std::set<const void*> written_;                           // where these matrices begin
};

}  // namespace sluice::models
