#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/columns/column.h"

namespace sluice::nodes {

/// A number as JSON that reads back as the same float32, in as few digits as that takes; "nan", "inf" or "-inf" where JSON has no
/// number.
Json to_json(float value);

/// One entry of a column. Bytes of a string that are not UTF-8 become U+FFFD when it is printed with dump_json.
Json entry_to_json(const engine::ColumnData& column, size_t index);

/// The entries begin <= i < end as a list.
Json entries_to_json(const engine::ColumnData& column, size_t begin, size_t end);

/// Likewise, of what there is one of for each entry.
template <class T>
Json entries_to_json(const std::vector<T>& all, engine::Range range) {
  Json list = Json::array();
  for (size_t i = range.begin; i < range.end; ++i) list.push_back(all[i]);
  return list;
}

/// On one line.
std::string dump_json(const Json& json);

}  // namespace sluice::nodes
