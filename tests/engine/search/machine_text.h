#pragma once

#include <string>

#include "tests/engine/search/capacity_machine.h"

namespace sluice::engine::testing {

/// A move, for the story of a trace.
std::string text_of(const Move& move);

}  // namespace sluice::engine::testing
