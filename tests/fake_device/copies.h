#pragma once

#include <cstdint>

namespace torch {
class Library;
}

namespace sluice::fake {

/// Memory as tensors: what allocates, copies and makes views.
void add_copies(torch::Library& aten);

int64_t take_pageable_copies();  // since the last call

}  // namespace sluice::fake
