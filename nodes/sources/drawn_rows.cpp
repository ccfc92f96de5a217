#include "nodes/sources/drawn_rows.h"

namespace sluice::nodes {

void DrawnRows::check(const std::function<std::optional<RowCheck::Fault>(const std::vector<Json>& values)>& fault_of) {
  check_.run(rows_, [&](data::Dataset::RowId id) { return fault_of(rows_.values(id)); });
}

std::optional<std::vector<Json>> DrawnRows::draw() {
  const auto row = cursor_.draw(rows_);
  return row ? std::optional(rows_.values(*row)) : std::nullopt;
}

std::optional<std::vector<Json>> DrawnRows::at(uint64_t position) {
  const auto row = rows_.row_at(position);
  return row ? std::optional(rows_.values(*row)) : std::nullopt;
}

}  // namespace sluice::nodes
