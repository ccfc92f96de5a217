#include "engine/schedule/rollout/group_columns.h"

#include <algorithm>
#include <string>

#include "engine/contract/columns/contract_breach.h"
#include "engine/contract/text_bound.h"

namespace sluice::engine {

void check_columns(const RunState& state, const Group& group, int writer) {
  const PlanNode& node = state.plan.nodes[static_cast<size_t>(writer)];
  for (const int column : node.writes) {
    const ColumnSpec& spec = state.column_specs[static_cast<size_t>(column)];
    const auto found = std::ranges::find(group.columns, spec, &Group::NamedColumn::spec);
    if (found == group.columns.end())
      throw_contract_breach("it did not write column '" + spec.name + "', which its contract promises");
    const size_t entries = spec.extent == Extent::kGroup ? 1 : group.layout.count(spec.extent);
    if (found->data.count() == entries) {
      check_text_bound(*node.type, node.needs, spec, found->data);
      continue;
    }
    throw_contract_breach("column '" + spec.name + "' of group " + std::to_string(group.index) + " has " +
                          std::to_string(found->data.count()) + " entries where the layout has " + std::to_string(entries));
  }
}

}  // namespace sluice::engine
