#include "nodes/columns/column_json.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace sluice::nodes {

using engine::DType;

// The shortest decimal of the float, read as a double, is printed by the JSON library with the same digits.
Json to_json(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  const auto printed = std::to_chars(text, text + sizeof text, value);
  double number = 0;
  std::from_chars(text, printed.ptr, number);
  return number;
}

Json entry_to_json(const engine::ColumnData& column, size_t index) {
  switch (column.dtype()) {
    case DType::kFloat32:
      return to_json(column.entries<float>()[index]);
    case DType::kInt64:
      return column.entries<int64_t>()[index];
    case DType::kUint8:
      return column.entries<uint8_t>()[index];
    case DType::kString:
      return column.entries<std::string>()[index];
  }
  throw InternalError("unknown type of a column");
}

Json entries_to_json(const engine::ColumnData& column, size_t begin, size_t end) {
  Json list = Json::array();
  for (size_t i = begin; i < end; ++i) list.push_back(entry_to_json(column, i));
  return list;
}

std::string dump_json(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace sluice::nodes
