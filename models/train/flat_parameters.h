#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/float_range.h"
#include "base/numbers/sum_tree.h"
#include "models/memory/sparse_buffer.h"
#include "models/train/flat_layout.h"
#include "models/train/stretch.h"

namespace sluice::models {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Neighbouring elements of a tensor, maybe all of them.
struct TensorPiece {
  std::string name;            // the tensor's
  std::vector<int64_t> shape;  // likewise
  int64_t first = 0;           // of its elements, in row-major order
  at::Tensor values;           // [n]
};

/// The weights that are trained, and their gradients, each in one buffer (flat_layout.h), so that an optimizer goes over them in
/// one pass. The tensors themselves become views of it, and so does `.grad` of each, which is always defined from then on: a
/// backward adds to it in place, and nobody may put another tensor there.
///
/// Gradients may have several slots, a buffer each, which are added in a fixed order (base/numbers/sum_tree.h): so a sum does not
/// depend on which process has added to which of them. One thread.
class FlatParameters {
 public:
  /// `weights`: at least one, float32, contiguous, on one device, leaves that need a gradient. Whoever holds a handle of one sees
  /// the move. `mine`: which of `slots` it has gradients of.
  explicit FlatParameters(const NamedTensors& weights, int slots = 1, SlotRange mine = {0, 1});

  /// `weights` lie in `there` as flat_layout.h says, where somebody else adds the gradients up: theirs are here until they are
  /// taken.
  FlatParameters(const NamedTensors& weights, const at::Tensor& there);

  int64_t size() const { return weights_.numel(); }
  int64_t vector_floats() const { return vector_floats_; }  // that come first

  bool on_host() const { return weights_.is_cpu(); }
  const at::Tensor& weight_buffer() const { return weights_; }            // [size()]
  at::Tensor gradient_buffer() const { return gradients_.select(0, 0); }  // [size()], of the first slot

  float* weights() { return weights_.mutable_data_ptr<float>(); }
  float* gradients() { return gradients_.mutable_data_ptr<float>(); }
  const float* gradients() const { return gradients_.const_data_ptr<float>(); }

  /// A backward adds to the gradients of this slot from now on.
  void enter_slot(int slot);

  /// True: a slot was entered since the last call.
  bool take_entered() { return std::exchange(touched_, false); }

  /// Adds up the slots as far as they are neighbours in the tree, in this range of the buffers; the gradients of the first one
  /// are the sum then, if all slots are here.
  void add_up_slots(FloatRange range);

  /// What gradients take now that somebody else adds up.
  int64_t passing_bytes() const { return passing_->resident_bytes(); }

  /// Whether anybody may have added to the gradients of a range since they were given back.
  bool holds_gradients(FloatRange range) const { return passing_->holds(range.begin, range.end); }

  /// The gradients of a range have been taken, and are zero: they need no memory until there are others.
  void give_back_gradients(FloatRange range);

  /// What add_up_slots() leaves: a buffer for each of subtrees_of(slots, mine), [size()]; the first is gradient_buffer(). And the
  /// same on the host.
  std::vector<at::Tensor> subtree_buffers() const;
  std::vector<float*> subtrees();

  /// Throws InternalError if somebody replaced the gradient of a weight.
  void check_gradients() const;

  void clear_gradients();

  /// Views of `buffer`[size()], one a weight, in the order of `weights`.
  NamedTensors views(const at::Tensor& buffer) const;

  /// Likewise of what a buffer has after the vectors, `matrices`[size() - vector_floats()] of any type: one a matrix.
  NamedTensors matrix_views(const at::Tensor& matrices) const;

  /// What of the stretches of a buffer belongs to weights, in the order of `weights`.
  std::vector<TensorPiece> pieces(const std::vector<Stretch>& stretches) const;

  /// Where the weights lie in the buffers, in the order of `weights`.
  std::vector<FloatRange> ranges() const;

  /// Handles of the weights, likewise.
  std::vector<at::Tensor> leaves() const;

 private:
  struct Place {
    std::string name;
    at::Tensor weight;
    int64_t first = 0;  // in the buffers
  };

  int64_t place(const NamedTensors& weights);
  void point_gradients();
  void move_sum(int into, int from, FloatRange range);

  std::vector<Place> places_;
  int64_t vector_floats_ = 0;
  std::optional<SparseBuffer> passing_;  // the gradients, where somebody else adds them up
  const int slots_;
  const SlotRange mine_;
  int entered_ = 0;  // of mine
  bool touched_ = false;
  at::Tensor weights_;    // [size()]
  at::Tensor gradients_;  // [slots, size()]
};

}  // namespace sluice::models
