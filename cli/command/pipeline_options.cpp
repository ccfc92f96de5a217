#include "cli/command/pipeline_options.h"

namespace sluice::cli {
namespace {

constexpr std::int64_t kMostRanks = 65536;  // of a plan

}  // namespace

void take_plugins(Command& command, PluginArguments& into) {
  command.list("--plugin", into.files, Values::file(), "load this plugin, wherever it lies (may be repeated)");
  command.flag("--plugins", into.all, "load the plugins that the pipeline names, wherever they lie");
}

void take_plugin_files(Command& command, std::vector<std::string>& into) {
  command.list("--plugin", into, Values::file(), "also load this plugin (may be repeated)");
}

void take_written(Command& command, PipelineArguments& into) {
  command.argument("pipeline", into.file, Values::pipeline(), "the pipeline, a TOML file or builtin:NAME").required();
  command.list("--set", into.sets, Values::any("KEY=VALUE"),
               "override one key: --set nodes.generate.max_new_tokens=64 (may be repeated)");
}

void take_pipeline(Command& command, PipelineArguments& into) {
  take_written(command, into);
  take_plugins(command, into.plugins);
}

void take_ranks(Command& command, PipelineArguments& into) {
  command.option("--ranks", into.ranks, Values::whole_number(1, kMostRanks),
                 "of a run on so many ranks (default: those of its roles, or 1)");
}

}  // namespace sluice::cli
