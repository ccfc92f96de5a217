#include "cli/metrics_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace sluice::cli {
namespace {

Json metrics_in(const std::string& line, const std::string& place) {
  Json row = parse_json(line, place);
  if (!row.is_object() || !row.contains("iteration") || !row["iteration"].is_number_integer())
    throw UserError(place + " is no metrics of an iteration");
  return row;
}

void take_row(const Json& row, const TakeMetric& take) {
  const auto iteration = row["iteration"].get<int64_t>();
  for (const auto& [name, value] : row.items()) {
    if (name != "iteration" && value.is_number()) take(iteration, name, value.get<double>());
  }
}

}  // namespace

void take_metrics(const GrowingLines& lines, size_t& begin, const TakeMetric& take, const TakeDamage& damaged) {
  constexpr size_t kAtOnce = 256;  // lines
  while (begin < lines.size()) {
    for (const std::string& line : lines.read(begin, std::min(lines.size(), begin + kAtOnce))) {
      const std::string place = lines.place(begin++);
      try {
        take_row(metrics_in(line, place), take);
      } catch (const UserError& error) {
        damaged(error);
      }
    }
  }
}

}  // namespace sluice::cli
