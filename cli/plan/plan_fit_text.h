#pragma once

#include <string>

#include "cli/plan/fit_search.h"

namespace sluice::cli {

/// What `plan --fit` prints: what the pipeline needs as it is, what each remedy takes less, and what fits, with the settings to
/// copy. `name`: of the pipeline.
std::string fit_text(const std::string& name, const Fit& fit);

/// The same as one JSON object.
std::string fit_json(const std::string& name, const Fit& fit);

}  // namespace sluice::cli
