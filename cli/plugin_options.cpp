#include "cli/plugin_options.h"

namespace sluice::cli {

void take_plugins(Command& command, PluginArguments& into) {
  command.list("--plugin", into.files, Values::file(), "load this plugin, wherever it lies (may be repeated)");
  command.flag("--plugins", into.all, "load the plugins that the pipeline names, wherever they lie");
}

}  // namespace sluice::cli
