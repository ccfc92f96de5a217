#pragma once

namespace sluice::nodes {

/// Gives the calling thread `threads` threads (itself included) for LibTorch's kernels; 1 <= threads. Each executor calls it
/// once, on its own thread, before any other work: the setting belongs to the thread, and the sum over all executors must not
/// exceed the cores of the machine. Results may depend on the number (sums are split differently), so a run repeats bit for bit
/// only with the same one.
void use_threads(int threads);

}  // namespace sluice::nodes
