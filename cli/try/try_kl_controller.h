#pragma once

#include <string_view>

#include "base/json/json.h"
#include "nodes/advantages/kl_controller.h"

namespace sluice::cli {

/// One step of a KL controller: {"kl": x, "samples": n, "coefficient": c} makes {"coefficient": the next one}. Without a
/// coefficient it starts with the controller's own. Throws UserError for what does not fit.
Json next_coefficient(const nodes::KlController& controller, std::string_view input);

}  // namespace sluice::cli
