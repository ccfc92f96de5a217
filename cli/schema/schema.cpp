#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/schema/commands.h"
#include "cli/schema/pipeline_schema.h"
#include "cli/terminal/output_file.h"

namespace sluice::cli {

int print_schema(const std::vector<std::string>& plugins, const std::filesystem::path& output) {
  const auto registry = make_registry(plugins);
  const std::string text = pipeline_schema(*registry).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_output(output, text);
  return kDone;
}

}  // namespace sluice::cli
