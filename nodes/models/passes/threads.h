#pragma once

#include <cstdint>

namespace sluice::nodes {

/// Gives the loops of the calling thread `threads` threads, itself included; 1 <= threads. Each executor calls it once, on its
/// own thread, before any other work, with its share of the cores. LibTorch's operators stay on the thread that calls them, of
/// this thread and of those that start later: what takes long is loops of ours (models/kernels/parallel.h), and a second pool
/// beside theirs would take their cores away. Results do not depend on the number.
void use_threads(int64_t threads);

}  // namespace sluice::nodes
