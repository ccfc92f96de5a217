#pragma once

#include <string>
#include <vector>

#include "engine/contract/params/param_table.h"

// How what reads values says that one is wrong.
namespace sluice::engine::detail {

/// Where the value has no place, as in a pipeline that was built in C++, the message names the owner.
void report(BindContext& context, const char* kind, const SourceSpan& where, std::string message, std::string caret,
            std::string help = {});

/// "KEY must be an integer from 1".
void report_expected(BindContext& context, const char* kind, const Value& value, const ParamInfo& info, std::string caret);

/// Likewise, of a value of another type.
void report_kind(BindContext& context, const Value& value, const ParamInfo& info);

/// As TOML; one without a fraction without its point.
std::string number_text(double value);

/// "a", "b"
std::string quoted_list(const std::vector<std::string>& names);

/// Of `problems` those from `first` on that have no place get that one: what a type's own code reports or throws has none.
void give_place(Problems& problems, size_t first, const SourceSpan& where);

}  // namespace sluice::engine::detail
