#include "engine/simulation/written_columns.h"

#include <string>

namespace sluice::engine {

std::vector<ColumnSpec> written_by(const Plan& plan, const PlanNode& node) {
  std::vector<ColumnSpec> columns;
  for (const int column : node.writes) columns.push_back(plan.columns[static_cast<size_t>(column)].spec);
  return columns;
}

void write_zeros(Group& group, const ColumnSpec& spec) {
  switch (spec.dtype) {
    case DType::kFloat32:
      group.write(Column<float>{spec.name.c_str(), spec.extent});
      break;
    case DType::kInt64:
      group.write(Column<int64_t>{spec.name.c_str(), spec.extent});
      break;
    case DType::kUint8:
      group.write(Column<uint8_t>{spec.name.c_str(), spec.extent});
      break;
    case DType::kString:
      group.write(Column<std::string>{spec.name.c_str(), spec.extent});
      break;
  }
}

}  // namespace sluice::engine
