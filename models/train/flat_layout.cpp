#include "models/train/flat_layout.h"

#include <functional>
#include <numeric>

namespace sluice::models {
namespace {

constexpr int64_t kLineFloats = 16;  // of a cache line

}  // namespace

FlatLayout::FlatLayout(const std::vector<std::vector<int64_t>>& shapes) : first(shapes.size()) {
  for (const bool matrices : {false, true}) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if ((shapes[i].size() > 1) != matrices) continue;
      first[i] = floats;
      floats += padded(std::accumulate(shapes[i].begin(), shapes[i].end(), int64_t{1}, std::multiplies<>()));
    }
    if (!matrices) vector_floats = floats;
  }
}

int64_t FlatLayout::padded(int64_t size) { return (size + kLineFloats - 1) / kLineFloats * kLineFloats; }

int64_t FlatLayout::floats_for(const std::vector<int64_t>& sizes) {
  int64_t total = 0;
  for (const int64_t size : sizes) total += padded(size);
  return total;
}

}  // namespace sluice::models
