#pragma once

#include "engine/contract/registry.h"

namespace sluice::engine {

/// The texts in `written` have together no more bytes than the contract of their writer says (NodeNeeds::string_bytes): the plan
/// has proven with it that they fit into memory. Throws UserError. A column of which it says nothing may have any.
///
/// Only of types that a plugin brought. The builtin sources have their bounds from the very rows that they read, and that of what
/// is sampled is how long texts of tokens mostly are: a policy that repeats a token of many bytes is no reason to end a run.
void check_text_bound(const NodeType& writer, const NodeNeeds& needs, const ColumnSpec& column, const ColumnData& written);

}  // namespace sluice::engine
