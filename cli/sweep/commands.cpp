#include "cli/sweep/commands.h"

#include <memory>

#include "cli/command/pipeline_options.h"
#include "cli/sweep/sweep_grid.h"

namespace sluice::cli {
namespace {

constexpr std::int64_t kMostAtATime = 1024;

std::string fault_of_seeds(const std::string& written) { return read_seeds(written).fault; }

struct TakenSweep {
  SweepArguments sweep;
  SweepTableArguments table;
  std::string seeds;
  std::filesystem::path output, resumed;

  int run() {
    if (!table.folder.empty()) return print_sweep_table(table);
    if (!seeds.empty()) sweep.seeds = read_seeds(seeds).seeds;
    sweep.goes_on = !resumed.empty();
    sweep.run.run_folder = sweep.goes_on ? resumed : output;
    return sweep_pipeline(sweep);
  }
};

}  // namespace

void add_sweep_command(Command& program) {
  Command& sweep =
      program.add("sweep", "run a pipeline with each combination of some values, and seeds",
                  {"rlhf-run sweep pipelines/grpo.toml --seeds 1..5",
                   "rlhf-run sweep my.toml --set models.actor.optimizer.learning_rate=1e-4,2e-4 --seeds 1..3 --parallel 2",
                   "rlhf-run sweep --resume runs/my-sweep", "rlhf-run sweep --table runs/my-sweep --format csv"});
  const auto taken = std::make_shared<TakenSweep>();
  PipelineArguments& pipeline = taken->sweep.run.pipeline;
  CLI::Option& file = sweep.argument("pipeline", pipeline.file, Values::pipeline(), "the pipeline, a TOML file or builtin:NAME");
  CLI::Option& sets = sweep.list(
      "--set", pipeline.sets, Values::any("KEY=VALUE,..."),
      "a key and its values, KEY=0.7,1, or keys that have the same value in each run, KEY+KEY=0.7,1 (may be repeated)");
  CLI::Option& seeds =
      sweep.option("--seeds", taken->seeds, {.shown = "1..5", .problem = fault_of_seeds},
                   "the seeds of each combination: numbers and ranges with commas between (default: that of the pipeline)");
  CLI::Option& output =
      sweep.option("-o,--output", taken->output, Values::written_folder(), "the folder of the sweep (default: runs/NAME-sweep)");
  CLI::Option& resume = sweep.option("--resume", taken->resumed, Values::folder(), "go on with the sweep in this folder");
  CLI::Option& table = sweep.option("--table", taken->table.folder, Values::folder(),
                                    "print what the sweep in this folder has come to so far, and run nothing");
  for (CLI::Option* option : {&resume, &table}) option->excludes(&file)->excludes(&sets)->excludes(&seeds)->excludes(&output);
  resume.excludes(&table);
  sweep.option("--parallel", taken->sweep.parallel, Values::whole_number(1, kMostAtATime),
               "so many runs at a time, which share the cores (default: 1)");
  sweep.flag("--dry-run", taken->sweep.dry_run, "only print what would be run");
  sweep.flag("--show-samples", taken->sweep.run.show_samples_every,
             "show two prompts and responses of each iteration, or with --show-samples=20 of each 20th");
  sweep.flag("--accept-changes", taken->sweep.run.accept_changes,
             "go on although the pipeline has changed in ways that change results");
  take_plugins(sweep, pipeline.plugins);
  sweep
      .list("--metric", taken->table.metrics, Values::any("NAME"),
            "of the table: instead of those that matter (may be repeated; the best is chosen by the first)")
      .needs(&table);
  sweep
      .option("--best", taken->table.best, Values::one_of({"highest", "lowest"}),
              "of the table: which value is best (default: lowest of a loss, else highest)")
      .needs(&table);
  sweep.option("--format", taken->table.format, Values::one_of({"text", "json", "csv"}), "of the table (default: text)")
      .needs(&table);
  sweep.app().final_callback([&file, &resume, &table] {
    if (file.count() + resume.count() + table.count() == 0)
      throw CLI::ValidationError("it is not said what to sweep: FILE, --resume FOLDER or --table FOLDER");
  });
  sweep.runs([taken] { return taken->run(); });
}

}  // namespace sluice::cli
