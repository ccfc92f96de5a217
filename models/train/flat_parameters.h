#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::models {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The weights that are trained, and their gradients, each in one buffer, so that an optimizer goes over them in one pass. The
/// tensors themselves become views of it, and so does `.grad` of each, which is always defined from then on: a backward adds to
/// it in place, and nobody may put another tensor there. Matrices come first, then vectors (norms, biases); each begins at a
/// cache line, and what is between them stays zero.
class FlatParameters {
 public:
  /// `weights`: at least one, float32, contiguous, on one device, leaves that need a gradient. Whoever holds a handle of one sees the move.
  explicit FlatParameters(const NamedTensors& weights);

  /// The length of a buffer for tensors of these sizes.
  static int64_t floats(const std::vector<int64_t>& sizes);

  int64_t size() const { return weights_.numel(); }
  int64_t matrix_floats() const { return matrix_floats_; }  // that come first

  bool on_host() const { return weights_.is_cpu(); }
  const at::Tensor& weight_buffer() const { return weights_; }      // [size()]
  const at::Tensor& gradient_buffer() const { return gradients_; }  // [size()]

  float* weights() { return weights_.mutable_data_ptr<float>(); }
  float* gradients() { return gradients_.mutable_data_ptr<float>(); }
  const float* gradients() const { return gradients_.const_data_ptr<float>(); }

  /// Throws InternalError if somebody replaced the gradient of a weight.
  void check_gradients() const;

  void clear_gradients();

  /// Views of `buffer`[size()], one a weight, in the order of `weights`.
  NamedTensors views(const at::Tensor& buffer) const;

 private:
  struct Slot {
    std::string name;
    at::Tensor weight;
    int64_t first = 0;  // in the buffers
  };

  std::vector<Slot> slots_;
  int64_t matrix_floats_ = 0;
  at::Tensor weights_, gradients_;
};

}  // namespace sluice::models
