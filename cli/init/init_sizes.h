#pragma once

#include "cli/init/init_data.h"
#include "cli/init/init_model.h"
#include "cli/init/init_text.h"

namespace sluice::cli {

/// Fills in what follows from the sizes of model and data: whether texts are turns, lengths, groups, iterations, learning rates,
/// and the tokens in flight that are wanted where memory has room. Throws UserError where the model is too short for the data.
void choose_sizes(const InitModel& model, const InitData& data, InitPipeline& pipeline);

}  // namespace sluice::cli
