#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/numbers/float_range.h"
#include "models/train/flat_parameters.h"

namespace sluice::nodes {

/// What ranks give each other of a model's gradients and weights: the buffers of its optimizer themselves, or, where these are on
/// a device, copies of them on the host, since that is what the network takes. Copies go there and back range by range.
///
/// fetch_...() wait for what the calling thread has asked the device for until then; put_back_...() until the device has it, so
/// that any thread may go on there. Refers to the parameters, which outlive it. One call at
/// a time, from any thread. Failure: what LibTorch throws.
class TrainedBuffers {
 public:
  explicit TrainedBuffers(models::FlatParameters& parameters);

  /// Of the gradients, a buffer for each of FlatParameters::subtrees(), on the host; of the weights one.
  std::vector<float*> gradients();
  float* weights();

  /// Brings a range there, before somebody reads it.
  void fetch_gradients(FloatRange range);
  void fetch_weights(FloatRange range);

  /// Brings back what is there: of the first buffer these ranges, and all else of the gradients is zero; or all weights.
  void put_back_gradients(const std::vector<FloatRange>& ranges);
  void put_back_weights();

  /// Of the copies.
  int64_t bytes() const { return copies_.defined() ? static_cast<int64_t>(copies_.nbytes()) : 0; }

 private:
  models::FlatParameters& parameters_;
  at::Tensor copies_;  // [subtrees, size]; undefined: the buffers are on the host. Weights take the place of the first gradients
};

}  // namespace sluice::nodes
