#include "cli/simulate/commands.h"

#include <memory>

#include "cli/command/pipeline_options.h"

namespace sluice::cli {

void add_simulate_command(Command& program) {
  Command& simulate = program.add("simulate", "what a run would take and where its time would go, without running it",
                                  {"rlhf-run simulate pipelines/ppo.toml",
                                   "rlhf-run simulate my.toml --costs runs/my-20260131-180000 --what-if schedule.policy_lag=1",
                                   "rlhf-run simulate my.toml --iterations 3 --trace trace.json",
                                   "rlhf-run simulate my.toml --ranks 64 --what-if cluster.network.gigabytes_per_second=12"});
  const auto taken = std::make_shared<SimulateArguments>();
  take_pipeline(simulate, taken->pipeline);
  take_ranks(simulate, taken->pipeline);
  CLI::Option& costs = simulate.option("--costs", taken->costs, Values::folder(),
                                       "what a run has measured: its folder (default: an estimate from the sizes of the models)");
  simulate.option("--gflops", taken->gflops, Values::number_above_0(), "of a core, for the estimate").excludes(&costs);
  simulate.list("--what-if", taken->what_ifs, Values::any("KEY=VALUE"),
                "also with this setting: --what-if schedule.policy_lag=1 (may be repeated)");
  simulate.option("--guesses-right", taken->guesses_right, Values::share(),
                  "with speculation: the share of guessed tokens that are right (default: as it was measured)");
  simulate.option("--iterations", taken->iterations, Values::number_above_0(), "fewer than the pipeline says");
  simulate.option("--trace", taken->trace, Values::written_file(), "write what each executor does when, as a run's trace.json");
  simulate.option("--format", taken->format, Values::one_of({"text", "json"}), "how it is printed (default: text)");
  simulate.runs([taken] { return simulate_pipeline(*taken); });
}

}  // namespace sluice::cli
