#include "models/kernels/parallel.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <optional>

namespace sluice::models {
namespace {

/// An iterator over one index for each thread; making one costs more than most ranges.
struct ThreadIndices {
  int64_t threads = 0;
  std::optional<at::TensorIterator> iterator;

  void reach(int64_t count) {
    if (threads == count) return;
    const at::Tensor indices = at::arange(count, at::kLong);
    iterator = at::TensorIteratorConfig().resize_outputs(false).check_all_same_dtype(false).add_owned_output(indices).build();
    threads = count;
  }
};

}  // namespace

void parallel_ranges(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> work) {
  if (count <= 0) return;
  const int64_t threads = at::get_num_threads();
  if (count <= grain || threads == 1 || at::in_parallel_region()) return work(0, count);
  thread_local ThreadIndices indices;
  indices.reach(threads);
  const int64_t grains = (count + grain - 1) / grain;
  const auto run = [&](char** data, const int64_t*, int64_t inner, int64_t outer) {
    const int64_t first = *reinterpret_cast<const int64_t*>(data[0]), last = first + inner * outer;
    const int64_t begin = grains * first / threads * grain, end = std::min(count, grains * last / threads * grain);
    if (begin < end) work(begin, end);
  };
  indices.iterator->for_each(run, /*grain_size=*/1);
}

}  // namespace sluice::models
