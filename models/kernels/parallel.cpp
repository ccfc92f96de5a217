#include "models/kernels/parallel.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/arange.h>

#include <algorithm>

namespace sluice::models {

void parallel_ranges(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& work) {
  if (count <= 0) return;
  if (count <= grain || at::get_num_threads() == 1 || at::in_parallel_region()) return work(0, count);
  const int64_t grains =
      (count + grain - 1) / grain;  // one index each: as many as `count` could be more than the work's own memory
  const at::Tensor indices = at::arange(grains, at::kLong);
  auto iterator = at::TensorIteratorConfig().resize_outputs(false).check_all_same_dtype(false).add_output(indices).build();
  const auto run = [&](char** data, const int64_t*, int64_t inner, int64_t outer) {
    const int64_t begin = *reinterpret_cast<const int64_t*>(data[0]);
    work(begin * grain, std::min(count, (begin + inner * outer) * grain));
  };
  iterator.for_each(run, /*grain_size=*/1);
}

}  // namespace sluice::models
