#include "cli/run_folder/damaged_lines.h"

#include <iterator>
#include <utility>

#include "base/text/strings.h"
#include "cli/pipeline/load.h"

namespace sluice::cli {

void warn_of_damaged_lines(const Problems& damage) {
  if (damage.empty()) return;
  Problem first = damage.front();
  first.severity = Severity::kWarning;
  first.notes.push_back(plural(std::ssize(damage), "line") + " of the file left out, as damaged");
  print_warnings({std::move(first)});
}

}  // namespace sluice::cli
