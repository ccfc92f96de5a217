#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/problem.h"

namespace sluice::engine {

/// The first line of an effective pipeline, which `plan --config` and runs write: what were layers is one file there, and where
/// each value came from is the comment behind it.
inline constexpr std::string_view kConfigHeading = "# The effective pipeline: every key, and where its value came from.\n";

struct OriginPlace {
  std::string file;
  size_t line = 0;  // from 1
};

/// Of "runs/ppo.toml:12". Nothing: it is no place in a file, as "default" and "--set" are.
std::optional<OriginPlace> place_of_origin(const std::string& origin);

/// The comment at the end of a line of an effective pipeline; empty: it has none.
std::string recorded_origin(const std::string& line);

/// Whether two values were written in one file: of an effective pipeline, in one of its layers.
bool were_written_together(const SourceSpan& one, const SourceSpan& other);

}  // namespace sluice::engine
