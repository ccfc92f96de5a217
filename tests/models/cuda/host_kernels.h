#pragma once

#include "models/cuda/own_kernels.h"

namespace sluice::models::host {

/// What our kernels compute, by plain loops on the host: for tests of who calls them where there is no GPU. Work on a stream that
/// is recorded is kept, and done when it is played.
const OwnKernels& kernels();

}  // namespace sluice::models::host
