#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace sluice::models::portable {

/// work(x), of which nothing is kept but x: the backward computes it again. Gradients of leaves that `work` reads are added to
/// their .grad as the backward passes. `work` must give the same again until then. Source: Chen et al. 2016, "Training Deep Nets
/// with Sublinear Memory Cost", section 4.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& work, const at::Tensor& x);

}  // namespace sluice::models::portable
