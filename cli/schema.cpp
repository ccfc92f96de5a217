#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/load.h"
#include "cli/output_file.h"
#include "cli/pipeline_schema.h"

namespace sluice::cli {

int print_schema(const std::vector<std::string>& plugins, const std::filesystem::path& output) {
  const auto registry = make_registry(plugins);
  const std::string text = pipeline_schema(*registry).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (output.empty())
    std::fputs(text.c_str(), stdout);
  else
    write_output(output, text);
  return kDone;
}

}  // namespace sluice::cli
