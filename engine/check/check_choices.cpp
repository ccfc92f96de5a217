#include <algorithm>
#include <utility>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"

// Some nodes work with a column if it is there, or with one of several. What is there is known once the order of the nodes is.
namespace sluice::engine::checking {
namespace {

bool arrives_at(const Draft& draft, int index, const ColumnSpec& column) {
  return std::any_of(draft.order.begin(), draft.order.end(), [&](int other) {
    const auto& needs = draft.node(other).needs;
    return needs && draft.before(other, index) &&
           std::find(needs->writes.begin(), needs->writes.end(), column) != needs->writes.end();
  });
}

const ColumnSpec* column_called(const Draft& draft, const std::string& name, int before) {
  for (const int other : draft.order) {
    const auto& needs = draft.node(other).needs;
    if (!needs || (before >= 0 && !draft.before(other, before))) continue;
    const auto found = std::ranges::find(needs->writes, name, &ColumnSpec::name);
    if (found != needs->writes.end()) return &*found;
  }
  return nullptr;
}

void report_unknown_column(Draft& draft, int index, const std::string& name) {
  const DraftNode& node = draft.node(index);
  if (!node.sealed) return;
  std::vector<std::string> there;
  for (const int other : draft.order) {
    const auto& needs = draft.node(other).needs;
    if (!needs || !draft.before(other, index)) continue;
    for (const ColumnSpec& column : needs->writes) there.push_back(column.name);
  }
  const std::string near = did_you_mean(name, there);
  draft.error("column-not-written", place_of(node),
              "node '" + node.name() + "' reads column '" + name + "', which no node writes",
              near.empty() ? std::string() : "did you mean " + near + "?", "there are " + join(there, ", "));
}

// What is written elsewhere is missing like any other column: check_columns says so.
void settle_reads_of_any_type(Draft& draft, int index) {
  NodeNeeds& needs = *draft.node(index).needs;
  for (const std::string& name : std::exchange(needs.reads_any, {})) {
    const ColumnSpec* column = column_called(draft, name, index);
    if (column == nullptr) column = column_called(draft, name, -1);
    if (column != nullptr)
      needs.reads.push_back(*column);
    else
      report_unknown_column(draft, index, name);
  }
}

}  // namespace

void settle_choices(Draft& draft) {
  for (const int index : draft.order) {
    auto& needs = draft.node(index).needs;
    if (!needs) continue;
    for (const ReadsChoice& choice : needs->choices) {
      const auto there = std::find_if(choice.columns.begin(), choice.columns.end(),
                                      [&](const ColumnSpec& column) { return arrives_at(draft, index, column); });
      if (there != choice.columns.end()) needs->reads.push_back(*there);
      // What must be there and is not is missing like any other column: check_columns says so of the last, the plainest one.
      else if (choice.required)
        needs->reads.push_back(choice.columns.back());
    }
    needs->choices.clear();
    settle_reads_of_any_type(draft, index);
  }
}

}  // namespace sluice::engine::checking
