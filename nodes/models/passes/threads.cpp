#include "nodes/models/passes/threads.h"

#include <ATen/Parallel.h>

#include "models/kernels/parallel.h"

namespace sluice::nodes {

void use_threads(int64_t threads) {
  // The first parallel operation of a thread takes over the number that any thread set last. Have that happen first, and then set
  // ours.
  at::get_num_threads();
  at::internal::lazy_init_num_threads();
  at::set_num_threads(1);
  models::set_loop_threads(threads);
}

}  // namespace sluice::nodes
