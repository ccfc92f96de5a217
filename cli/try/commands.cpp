#include "cli/try/commands.h"

#include <memory>

#include "cli/command/pipeline_options.h"

namespace sluice::cli {

void add_try_command(Command& program) {
  Command& attempt = program.add(
      "try", "run one node or objective on columns given as JSON on standard input",
      {"echo '{\"columns\": {\"token_rewards\": [[1, 2, 3]], \"values\": [[0.5, 1, 1.5]]}}' | rlhf-run try gae --set lambda=1.0",
       "rlhf-run try objective:ppo_clip < columns.json"});
  struct Taken {
    std::string type;
    std::vector<std::string> sets;
    std::string preset;
    std::vector<std::string> plugins;
  };
  const auto taken = std::make_shared<Taken>();
  attempt.argument("type", taken->type, Values::tried_type(), "such as gae or objective:ppo_clip").required();
  attempt.list("--set", taken->sets, Values::any("KEY=VALUE"), "a parameter: --set lambda=0.95 (may be repeated)");
  take_plugin_files(attempt, taken->plugins);
  attempt.option("--preset", taken->preset, Values::any(),
                 "values for parameters that are not set, as [pipeline] preset gives them");
  attempt.runs([taken] { return try_one(taken->type, taken->sets, taken->preset, taken->plugins); });
}

}  // namespace sluice::cli
