#include "cli/schema/commands.h"

#include <memory>

#include "cli/command/pipeline_options.h"

namespace sluice::cli {

void add_schema_command(Command& program) {
  Command& schema = program.add(
      "schema", "the JSON Schema of pipeline files, for editors and taplo",
      {"rlhf-run schema -o pipeline.schema.json", "rlhf-run schema --plugin build/libmy_nodes.so -o pipeline.schema.json"});
  struct Taken {
    std::vector<std::string> plugins;
    std::filesystem::path output;
  };
  const auto taken = std::make_shared<Taken>();
  take_plugin_files(schema, taken->plugins);
  schema.option("-o,--output", taken->output, Values::file(), "the file that it is written to (default, and -: standard output)");
  schema.runs([taken] { return print_schema(taken->plugins, taken->output); });
}

}  // namespace sluice::cli
