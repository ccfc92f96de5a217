#pragma once

#include <string>

#include "engine/contract/spec/spec.h"

namespace sluice::dsl {

/// The pipeline as one TOML file, without comments: parse_pipeline gives an equal spec back. The text depends on the values only,
/// not on how they were written. Strings are as they are: a path that is relative to some other folder is the caller's to mend.
std::string to_toml(const engine::PipelineSpec& spec);

}  // namespace sluice::dsl
