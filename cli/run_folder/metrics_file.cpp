#include "cli/run_folder/metrics_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/json/json.h"
#include "cli/run_folder/damaged_lines.h"

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

void take_metrics(const GrowingLines& lines, size_t& begin, const TakeMetric& take, Problems& damage) {
  constexpr size_t kAtOnce = 256;  // lines
  while (begin < lines.size()) {
    for (const std::string& line : lines.read(begin, std::min(lines.size(), begin + kAtOnce))) {
      const std::string place = lines.place(begin++);
      if (const auto row = read_or_note([&] { return metrics_in(line, place); }, damage)) take_row(*row, take);
    }
  }
}

}  // namespace sluice::cli
