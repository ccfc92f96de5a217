#include "nodes/models/torch_threads.h"

#include <ATen/Parallel.h>

namespace sluice::nodes {

void use_threads(int threads) {
  // The first parallel operation of a thread takes over the number that any thread set last. Have that happen first, and then set
  // ours.
  at::get_num_threads();
  at::internal::lazy_init_num_threads();
  at::set_num_threads(threads);
}

}  // namespace sluice::nodes
