#include "nodes/sources/row_cursor.h"

namespace sluice::nodes {
namespace {

constexpr const char *kDrawn = "rows_drawn", *kFingerprint = "fingerprint";

}  // namespace

std::optional<data::Dataset::RowId> RowCursor::draw(data::Dataset& rows) {
  const auto row = rows.row_at(drawn_);
  if (row) ++drawn_;
  return row;
}

void RowCursor::save(const data::Dataset& rows, engine::StateWriter& state) const {
  const data::DatasetPosition position = rows.position(drawn_);
  state.put(kDrawn, static_cast<int64_t>(position.next));
  state.put(kFingerprint, static_cast<int64_t>(position.fingerprint));
}

void RowCursor::load(const data::Dataset& rows, const engine::StateReader& state) {
  drawn_ = rows.resume(
      {.next = static_cast<uint64_t>(state.integer(kDrawn)), .fingerprint = static_cast<uint32_t>(state.integer(kFingerprint))});
}

}  // namespace sluice::nodes
