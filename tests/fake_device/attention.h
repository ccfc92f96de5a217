#pragma once

namespace torch {
class Library;
}

namespace sluice::fake {

/// What LibTorch has for GPUs alone: flash attention over ragged samples with its backward, and the product of narrow matrices
/// with a wide result. By the plain formulas.
void add_attention(torch::Library& aten);

/// What models/cuda/ has kernels for.
void add_own_kernels(torch::Library& ours);

}  // namespace sluice::fake
