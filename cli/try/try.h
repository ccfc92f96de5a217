#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "engine/contract/registry.h"

namespace sluice::cli {

/// `rlhf-run try WHAT [--set KEY=VALUE ...] [--preset NAME]`: one node type, objective:NAME or KL controller, on the columns that
/// `in` has (see ColumnsInput).
///
/// Prints {"columns": {...}} with what the node wrote. For an objective, computed in double precision: {"loss": loss_sum / count,
/// "loss_sum": ..., "count": ..., "gradient": {COLUMN: d loss / d COLUMN, a list a sample}, "metrics": {...}}. A KL controller
/// reads {"kl": x, "samples": n, "coefficient": c} and prints {"coefficient": the next one}. Returns the exit code; throws
/// UserError for an unknown name, wrong parameters and columns that do not fit.
int run_try(const engine::Registry& registry, const std::string& what, const std::vector<std::string>& sets,
            const std::string& preset, std::istream& in, std::ostream& out);

}  // namespace sluice::cli
