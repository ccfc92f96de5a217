#pragma once

#include <cstddef>
#include <string>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// Learning rates and scheduled numbers over the iterations of a run, drawn in lines of at most `width` cells, at least 40.
std::string plot_text(const engine::Plan& plan, size_t width, bool unicode);

/// The same points as JSON.
std::string plot_json(const engine::Plan& plan, size_t width, bool unicode);

}  // namespace sluice::cli
