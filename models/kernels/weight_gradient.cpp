#include "models/kernels/weight_gradient.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kRowBlock = 256;    // rows of a panel: with 32 inputs, 32 KB, the first-level cache
constexpr int64_t kInputBlock = 512;  // inputs whose panels are packed together: 512 KB, the second-level cache
constexpr int64_t kMinTiles = 2;      // packing the inputs again on another thread costs more than fewer tiles gain

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels/weight_gradient.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels/weight_gradient.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels/weight_gradient.inc"
}  // namespace baseline

struct Kernel {
  decltype(&baseline::add_tiles) add_tiles;
  int64_t tile;
};

Kernel kernel_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return {v4::add_tiles, v4::kTile};
    case Machine::kV3:
      return {v3::add_tiles, v3::kTile};
    case Machine::kBaseline:
      break;
  }
  return {baseline::add_tiles, baseline::kTile};
}

}  // namespace

int64_t weight_gradient_scratch_floats() { return kRowBlock * (kInputBlock + v4::kTile); }

void add_weight_gradient(const WeightGradientArguments& arguments, Machine machine) {
  const Kernel kernel = kernel_for(machine);
  const int64_t tiles = (arguments.outputs + kernel.tile - 1) / kernel.tile;
  parallel_ranges(tiles, kMinTiles, [&](int64_t begin, int64_t end) { kernel.add_tiles(arguments, begin, end); });
}

}  // namespace sluice::models
