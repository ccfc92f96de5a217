#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/segment.h"
#include "models/portable/layer_maths.h"

namespace sluice::models::portable {

/// What attention has where several ranks compute a pass (segment.h), without a ring: from the rows of this segment with all
/// heads, [n,N,D], to all rows of the pass with the heads of this place, [T,N/ranks,D]. Differentiable: the other ranks run their
/// backward at the same time, and ask for the same in the same order. Of a whole pass it is what it is given.
LayerMaths::Heads shared_heads(const Segment& segment, const LayerMaths::Heads& rows);

/// And back, of what attention gives.
at::Tensor own_rows(const Segment& segment, const at::Tensor& heads);

}  // namespace sluice::models::portable
