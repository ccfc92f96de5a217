#include "models/train/flat_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kAddedAtOnce = 1 << 16;  // floats by one thread

}  // namespace

FlatParameters::FlatParameters(const NamedTensors& weights, int slots, SlotRange mine) : slots_(slots), mine_(mine) {
  const at::NoGradGuard no_gradient;
  const int64_t floats = place(weights);
  // Memory that the system has not given yet: each weight gives its old one back as it moves, so there are never two copies.
  weights_ = at::empty({floats}, at::TensorOptions(at::kFloat).device(places_.front().weight.device()));
  const auto views_of_weights = views(weights_);
  for (size_t i = 0; i < places_.size(); ++i) {
    at::Tensor& weight = places_[i].weight;
    const int64_t size = weight.numel();
    views_of_weights[i].second.copy_(weight);
    weights_.narrow(0, places_[i].first + size, FlatLayout::padded(size) - size).zero_();
    weight.set_data(views_of_weights[i].second);
  }
  SLUICE_CHECK(0 <= mine.first && mine.first < mine.last && mine.last <= slots, "gradients of no slot");
  gradients_ = at::zeros({mine.last - mine.first, floats}, weights_.options());
  point_gradients();
}

FlatParameters::FlatParameters(const NamedTensors& weights, const at::Tensor& there) : slots_(1), mine_{0, 1}, weights_(there) {
  SLUICE_CHECK(there.numel() == place(weights), "memory of another size");
  for (const Place& place : places_)
    SLUICE_CHECK(place.weight.const_data_ptr() == there.const_data_ptr<float>() + place.first, place.name + " lies elsewhere");
  passing_.emplace(size());
  gradients_ = passing_->tensor().unsqueeze(0);
  point_gradients();
}

int64_t FlatParameters::place(const NamedTensors& weights) {
  SLUICE_CHECK(!weights.empty(), "nothing is trained");
  std::vector<std::vector<int64_t>> shapes;
  for (const auto& [name, weight] : weights) {
    SLUICE_CHECK(weight.scalar_type() == at::kFloat && weight.is_contiguous() && weight.requires_grad() && weight.is_leaf(),
                 name);
    shapes.push_back(weight.sizes().vec());
  }
  const FlatLayout layout(shapes);
  for (size_t i = 0; i < weights.size(); ++i) places_.push_back({weights[i].first, weights[i].second, layout.first[i]});
  vector_floats_ = layout.vector_floats;
  return layout.floats;
}

void FlatParameters::point_gradients() {
  const auto views_of_gradients = views(gradients_.select(0, entered_));
  for (size_t i = 0; i < places_.size(); ++i) places_[i].weight.mutable_grad() = views_of_gradients[i].second;
}

void FlatParameters::enter_slot(int slot) {
  touched_ = true;
  if (passing_) return;  // what adds up does not mind which slot it is
  SLUICE_CHECK(mine_.first <= slot && slot < mine_.last, "gradients of a slot of another rank");
  if (std::exchange(entered_, slot - mine_.first) == entered_) return;
  point_gradients();
}

void FlatParameters::add_up_slots(FloatRange range) {
  for (const SlotRange& subtree : subtrees_of(slots_, mine_)) {
    std::vector<SlotRange> leaves;
    for (int slot = subtree.first; slot < subtree.last; ++slot) leaves.push_back({slot, slot + 1});
    const int first = subtree.first - mine_.first;
    for (const auto& [into, from] : tree_additions(slots_, leaves)) move_sum(first + into, first + from, range);
  }
}

void FlatParameters::move_sum(int into, int from, FloatRange range) {
  if (!on_host()) {
    const auto of_slot = [&](int slot) { return gradients_.select(0, slot).narrow(0, range.begin, range.size()); };
    of_slot(into).add_(of_slot(from));
    of_slot(from).zero_();
    return;
  }
  float *sum = gradients() + into * size() + range.begin, *moved = gradients() + from * size() + range.begin;
  parallel_ranges(range.size(), kAddedAtOnce,
                  [&](int64_t begin, int64_t end) { sluice::move_sum(sum + begin, moved + begin, end - begin); });
}

std::vector<at::Tensor> FlatParameters::subtree_buffers() const {
  std::vector<at::Tensor> buffers;
  for (const SlotRange& subtree : subtrees_of(slots_, mine_))
    buffers.push_back(gradients_.select(0, subtree.first - mine_.first));
  return buffers;
}

std::vector<float*> FlatParameters::subtrees() {
  std::vector<float*> buffers;
  for (const at::Tensor& buffer : subtree_buffers()) buffers.push_back(buffer.mutable_data_ptr<float>());
  return buffers;
}

void FlatParameters::give_back_gradients(FloatRange range) {
  SLUICE_CHECK(passing_.has_value(), "gradients that are added up here");
  passing_->give_back(range.begin, range.end);
}

void FlatParameters::check_gradients() const {
  const auto* first = static_cast<const float*>(gradients_.const_data_ptr()) + entered_ * size();
  for (const Place& slot : places_) {
    const at::Tensor& gradient = slot.weight.grad();
    SLUICE_CHECK(gradient.defined() && gradient.const_data_ptr() == first + slot.first,
                 "the gradient of " + slot.name + " was replaced instead of added to");
  }
}

// What passes is zero where nobody adds.
void FlatParameters::clear_gradients() {
  if (!passing_) gradients_.zero_();
}

NamedTensors FlatParameters::views(const at::Tensor& buffer) const {
  NamedTensors result;
  for (const Place& slot : places_) {
    result.emplace_back(slot.name, buffer.narrow(0, slot.first, slot.weight.numel()).view(slot.weight.sizes()));
  }
  return result;
}

NamedTensors FlatParameters::matrix_views(const at::Tensor& matrices) const {
  NamedTensors result;
  for (const Place& place : places_) {
    if (place.first < vector_floats_) continue;
    result.emplace_back(place.name,
                        matrices.narrow(0, place.first - vector_floats_, place.weight.numel()).view(place.weight.sizes()));
  }
  return result;
}

std::vector<TensorPiece> FlatParameters::pieces(const std::vector<Stretch>& stretches) const {
  std::vector<TensorPiece> found;
  for (const Place& place : places_) {
    for (const auto& [range, values] : stretches) {
      const int64_t begin = std::max(place.first, range.begin), end = std::min(place.first + place.weight.numel(), range.end);
      if (begin >= end) continue;
      found.push_back({.name = place.name,
                       .shape = place.weight.sizes().vec(),
                       .first = begin - place.first,
                       .values = values.narrow(0, begin - range.begin, end - begin)});
    }
  }
  return found;
}

std::vector<FloatRange> FlatParameters::ranges() const {
  std::vector<FloatRange> ranges;
  for (const Place& place : places_) ranges.push_back({place.first, place.first + place.weight.numel()});
  return ranges;
}

std::vector<at::Tensor> FlatParameters::leaves() const {
  std::vector<at::Tensor> weights;
  for (const Place& place : places_) weights.push_back(place.weight);
  return weights;
}

}  // namespace sluice::models
