#include "engine/contract/text_bound.h"

#include <algorithm>

#include "base/text/strings.h"
#include "engine/contract/columns/contract_breach.h"

namespace sluice::engine {

void check_text_bound(const NodeType& writer, const NodeNeeds& needs, const ColumnSpec& column, const ColumnData& written) {
  if (column.dtype != DType::kString || writer.is_builtin()) return;
  const auto bound = needs.string_bytes.find(column.name);
  if (bound == needs.string_bytes.end()) return;
  int64_t bytes = 0;
  for (const std::string& text : written.entries<std::string>()) bytes += static_cast<int64_t>(text.size());
  const auto count = static_cast<int64_t>(written.count());
  if (bytes / std::max<int64_t>(1, count) < bound->second || bytes <= bound->second * count) return;
  throw_contract_breach("column '" + column.name + "' has " + human_bytes(bytes) + " in " + plural(count, "text") +
                        ", and its contract says at most " + plural(bound->second, "byte") + " of each");
}

}  // namespace sluice::engine
