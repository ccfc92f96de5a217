#include <algorithm>

#include "engine/check_draft.h"

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
  }
}

}  // namespace sluice::engine::checking
