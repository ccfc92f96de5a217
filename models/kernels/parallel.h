#pragma once

#include <cstdint>
#include <functional>

namespace sluice::models {

/// Calls `work(begin, end)` on disjoint ranges that cover [0, count), on the threads that LibTorch's own kernels use from here
/// (at::set_num_threads), and returns when all are done. Ranges of fewer than `grain` are not split. An exception is passed on.
///
/// at::parallel_for would be serial: its template only starts threads in code compiled with -fopenmp, which ours never is,
/// because the wheel brings its own OpenMP library. A TensorIterator runs inside the library.
void parallel_ranges(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& work);

}  // namespace sluice::models
