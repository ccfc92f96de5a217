#include "cli/metrics_file.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace sluice::cli {
namespace {

void take_line(const std::string& line, const std::string& place, const TakeMetric& take) {
  const Json row = parse_json(line, place);
  if (!row.is_object() || !row.contains("iteration") || !row["iteration"].is_number_integer())
    throw UserError(place + " is no metrics of an iteration");
  const auto iteration = row["iteration"].get<int64_t>();
  for (const auto& [name, value] : row.items()) {
    if (name != "iteration" && value.is_number()) take(iteration, name, value.get<double>());
  }
}

}  // namespace

void take_metrics(const GrowingLines& lines, size_t& begin, const TakeMetric& take) {
  constexpr size_t kAtOnce = 256;  // lines
  while (begin < lines.size()) {
    for (const std::string& line : lines.read(begin, std::min(lines.size(), begin + kAtOnce))) {
      take_line(line, lines.place(begin), take);
      ++begin;
    }
  }
}

}  // namespace sluice::cli
