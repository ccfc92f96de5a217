#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/params/param_info.h"

namespace sluice::cli {

// JSON Schema (draft 7) of single values of a pipeline file, from what their tables say of them.

/// What a schema calls a part that it states once: {"$ref": "#/definitions/NAME"}.
Json reference_to(const std::string& definition);

/// A value that `info` takes: type, range, choices, default, and what it is for. A component is a reference to the definition of
/// its kind, such as "objective".
Json value_schema(const engine::ParamInfo& info);

/// A table with these keys and no others.
Json table_schema(const std::vector<engine::ParamInfo>& params);

/// A name, or several different ones.
Json name_schema(const std::string& doc);
Json names_schema(const std::string& doc);

/// One of a few names, each with what it is for. Others are not refused, so that an editor offers these without knowing all.
Json offered_names(const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace sluice::cli
