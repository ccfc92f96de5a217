#pragma once

#include "tests/fake_device/fake_device.h"

namespace torch {
class Library;
}

namespace sluice::fake {

/// Memory as tensors: what allocates, copies and makes views.
void add_copies(torch::Library& aten);

Counts take_copy_counts();  // those that copies have, since the last call

}  // namespace sluice::fake
