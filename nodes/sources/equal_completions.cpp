#include "nodes/sources/equal_completions.h"

#include <algorithm>
#include <string>

#include "base/text/strings.h"

namespace sluice::nodes {

void EqualCompletions::look_at(std::span<const Json> completions, const data::Dataset& rows, data::Dataset::RowId id) {
  ++rows_;
  for (size_t i = 1; i < completions.size(); ++i) {
    const auto before = completions.first(i);
    if (completions[i].is_null() || std::ranges::find(before, completions[i]) == before.end()) continue;
    if (equal_++ == 0) first_ = rows.where(id);
    return;
  }
}

void EqualCompletions::warn(engine::DataLook& look) const {
  if (equal_ == 0) return;
  const std::string of = equal_ == rows_ ? plural(rows_, "row") : std::to_string(equal_) + " of " + plural(rows_, "row");
  look.warning("path", "completions of " + of + (look.all() ? "" : " looked at") + " are the same text: nothing is learned there",
               {"the first one: " + first_.source->name + ":" + std::to_string(first_.line)},
               "leave them out; or name the fields of the better and the worse completion, if these are others");
}

}  // namespace sluice::nodes
