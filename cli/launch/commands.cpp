#include "cli/launch/commands.h"

#include <cstdint>
#include <memory>

#include "cli/command/pipeline_options.h"

namespace sluice::cli {
namespace {

constexpr std::int64_t kMostLaunched = 1024;  // on one machine
constexpr std::int64_t kMostRestarts = 1'000'000;

}  // namespace

void add_run_command(Command& program) {
  Command& run = program.add(
      "run", "run a pipeline (also: rlhf-run FILE)",
      {"rlhf-run run pipelines/ppo.toml", "rlhf-run pipelines/grpo.toml --set pipeline.iterations=20 --run-dir runs/short",
       "rlhf-run run pipelines/ppo.toml --run-dir runs/ppo --resume auto"});
  struct Taken {
    RunArguments run;
    std::string resume;
  };
  const auto taken = std::make_shared<Taken>();
  take_run(run, taken->run, taken->resume);
  run.runs([taken] {
    taken->run.may_go_on = taken->resume == "auto";
    return run_or_launch(taken->run);
  });
}

void add_launch_command(Command& program) {
  Command& launch = program.add("launch", "run a pipeline in several processes of this machine",
                                {"rlhf-run launch --ranks 2 pipelines/ppo.toml",
                                 "rlhf-run launch --ranks 4 pipelines/ppo.toml --run-dir runs/ppo --resume auto"});
  struct Taken {
    LaunchArguments launch;
    std::string resume;
  };
  const auto taken = std::make_shared<Taken>();
  launch.option("--ranks", taken->launch.ranks, Values::whole_number(1, kMostLaunched),
                "how many processes (default: as many as the roles of the pipeline have)");
  launch.option("--restarts", taken->launch.restarts, Values::whole_number(0, kMostRestarts),
                "how often a lost rank of an elastic role is started again, or all where the run has not begun (default: 3)");
  launch.option("--port", taken->launch.port, Values::whole_number(1, 65535),
                "of this machine, where they meet (default: one that is free)");
  take_run(launch, taken->launch.run, taken->resume);
  launch.runs([taken] {
    taken->launch.run.may_go_on = taken->resume == "auto";
    return launch_pipeline(taken->launch);
  });
}

void add_resume_command(Command& program) {
  Command& resume = program.add("resume", "go on with a run from its newest intact checkpoint",
                                {"rlhf-run resume runs/ppo-20260131-180000",
                                 "rlhf-run resume runs/ppo --set pipeline.iterations=200", "rlhf-run resume runs/ppo --from 80"});
  const auto taken = std::make_shared<ResumeArguments>();
  resume.argument("folder", taken->run_folder, Values::folder(), "the run folder").required();
  resume.option("--from", taken->from, Values::whole_number(1, INT32_MAX), "an older checkpoint, by its count of iterations");
  resume.list("--set", taken->sets, Values::any("KEY=VALUE"),
              "override one key: --set pipeline.iterations=200 (may be repeated)");
  take_plugins(resume, taken->plugins);
  resume.flag("--show-samples", taken->show_samples_every,
              "show two prompts and responses of each iteration, or with --show-samples=20 of each 20th");
  resume.flag("--accept-changes", taken->accept_changes, "also where they change results");
  resume.runs([taken] { return resume_or_launch(*taken); });
}

}  // namespace sluice::cli
