#include "nodes/models/weights/common_weights.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/train/flat_layout.h"

namespace sluice::nodes {
namespace {

constexpr int64_t kFloatBytes = 4, kLineBytes = 64;

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// A tensor of its own that keeps the memory.
at::Tensor tensor_in(const std::shared_ptr<std::byte>& memory, int64_t begin, const std::vector<int64_t>& shape,
                     at::ScalarType dtype) {
  return at::from_blob(
      memory.get() + begin, shape, [memory](void*) {}, at::TensorOptions(dtype));
}

std::vector<FloatRange> in_bytes(std::vector<FloatRange> floats) {
  for (FloatRange& range : floats) range = {range.begin * kFloatBytes, range.end * kFloatBytes};
  return floats;
}

}  // namespace

CommonWeights::CommonWeights(const Of& of, engine::CommonMemory& memory) : memory_(memory) {
  lay_out(of);
  for (Region* const region : {&frozen_, &moving_}) {
    region->memory = memory.get(of.model + (region == &moving_ ? "/trained" : "/frozen"), static_cast<size_t>(region->bytes));
    bytes_of_others_ += region->bytes - floats_of(region->own);
  }
  if (moving_.bytes > 0) trained_ = tensor_in(moving_.memory, 0, {moving_.bytes / kFloatBytes}, at::kFloat);
}

// Adapters are made later, of weights that are frozen all, and a value head beside them is as small.
void CommonWeights::lay_out(const Of& of) {
  models::Weights shapes_only;
  const auto expected = models::expected_weights(of.config, of.head, shapes_only);
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> names;
  for (const models::ExpectedWeight& weight : expected) {
    if (of.is_updated && !of.trained.freezes(weight.name)) {
      shapes.push_back(weight.shape);
      names.push_back(weight.name);
      continue;
    }
    const bool narrow = of.precision == models::Precision::kBfloat16 && models::is_operand(weight, shapes_only);
    const int64_t bytes = elements(weight.shape) * (narrow ? 2 : kFloatBytes);
    places_[weight.name] = {.moves = false, .begin = frozen_.bytes};
    frozen_.bytes += (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  const models::FlatLayout layout(shapes);
  for (size_t i = 0; i < names.size(); ++i) places_[names[i]] = {.moves = true, .begin = layout.first[i] * kFloatBytes};
  moving_.bytes = layout.floats * kFloatBytes;
  const int place = memory_.ranks().place, count = memory_.ranks().count();
  frozen_.own = {owned_floats(frozen_.bytes, place, count)};
  moving_.own = in_bytes(owned_floats(buckets_of(layout.floats, of.floats_of_bucket), place, count));
}

at::Tensor CommonWeights::place(const models::ExpectedWeight& weight, const at::Tensor& read) {
  const Place& place = places_.at(weight.name);
  const Region& region = region_of(place);
  at::Tensor there = tensor_in(region.memory, place.begin, weight.shape, read.scalar_type());
  const auto width = static_cast<int64_t>(read.element_size()), end = place.begin + read.numel() * width;
  for (const FloatRange& own : region.own) {
    const int64_t first = (std::max(own.begin, place.begin) - place.begin) / width;
    const int64_t last = (std::min(own.end, end) - place.begin) / width;
    if (first < last) there.view({-1}).narrow(0, first, last - first).copy_(read.view({-1}).narrow(0, first, last - first));
  }
  return there;
}

}  // namespace sluice::nodes
