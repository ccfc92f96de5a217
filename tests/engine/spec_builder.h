#pragma once

#include <string>

#include "engine/contract/spec/spec.h"

namespace sluice::engine::testing {

/// A PipelineSpec out of the text of a pipeline file, with spans, so that problems show their carets. Understands just what the
/// tests of the engine write: tables of one line a key, strings without escapes, numbers, booleans, arrays, inline tables. Throws
/// std::logic_error on anything else. The real reader is dsl/, which the engine must not know.
PipelineSpec spec_of(const std::string& text, const std::string& file = "pipeline.toml");

}  // namespace sluice::engine::testing
