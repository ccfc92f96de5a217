#include "models/kernels/kernels_linear.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/kernels/instruction_set.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kInputBlock = 256;       // inputs of a packed panel: with 32 outputs, 32 KB, the first-level cache
constexpr int64_t kMinTaskRows = 64;       // below, packing a panel twice costs more than another thread saves
constexpr int64_t kMinTaskWork = 1 << 17;  // multiply-adds that a thread is worth waking for

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels/kernels_linear.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels/kernels_linear.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels/kernels_linear.inc"
}  // namespace baseline

using Panel = void (*)(const LinearArguments&, int64_t output, int64_t row_begin, int64_t row_end);

struct Kernel {
  Panel panel;
  int64_t width;
};

Kernel kernel_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return {v4::linear_panel, v4::kWidth};
    case Machine::kV3:
      return {v3::linear_panel, v3::kWidth};
    case Machine::kBaseline:
      break;
  }
  return {baseline::linear_panel, baseline::kWidth};
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void linear(const LinearArguments& arguments, Machine machine) {
  if (arguments.rows == 0 || arguments.outputs == 0) return;
  const Kernel kernel = kernel_for(machine);
  const int64_t panels = ceil_divide(arguments.outputs, kernel.width);
  const int64_t most_splits = std::max<int64_t>(1, arguments.rows / kMinTaskRows);
  const int64_t splits = std::min(most_splits, ceil_divide(2 * at::get_num_threads(), panels));
  const int64_t rows = ceil_divide(arguments.rows, splits);
  const int64_t grain = ceil_divide(kMinTaskWork, std::max<int64_t>(1, rows * arguments.inputs * kernel.width));
  parallel_ranges(panels * splits, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task % splits * rows;
      if (row < arguments.rows) kernel.panel(arguments, task / splits * kernel.width, row, std::min(row + rows, arguments.rows));
    }
  });
}

}  // namespace sluice::models
