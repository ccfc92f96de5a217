#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models::portable {

/// The tokens of R sequences, on a device. A handle.
struct Texts {
  at::Tensor ids;      // [R,L] int64; after the last of a sequence any ids of the vocabulary
  at::Tensor lengths;  // [R,1] int64
};

}  // namespace sluice::models::portable
