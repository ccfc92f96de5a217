#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace sluice::models {

/// Calls `work(begin, end)` on disjoint ranges that cover [0, count), on the threads that LibTorch's own kernels use from here
/// (at::set_num_threads), and returns when all are done. Ranges of fewer than `grain` are not split. Inside a parallel region the
/// whole range is one. An exception is passed on. Allocates nothing but on a thread's first call behind a change of the number of
/// threads.
///
/// at::parallel_for would be serial: its template only starts threads in code compiled with -fopenmp, which ours never is,
/// because the wheel brings its own OpenMP library. A TensorIterator runs inside the library. A team of threads of our own would
/// fight with the library's for the cores: its threads spin for a while behind each region.
void parallel_ranges(int64_t count, int64_t grain, c10::function_ref<void(int64_t begin, int64_t end)> work);

/// The same for work that takes long: several ranges a thread, and whoever is done takes the next, so that a core that something else
/// takes away for a while holds up the others for one of them. Which thread does which is by chance.
void parallel_pieces(int64_t count, c10::function_ref<void(int64_t begin, int64_t end)> work);

}  // namespace sluice::models
