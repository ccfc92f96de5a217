#include "cli/command/run_arguments.h"

#include "cli/command/pipeline_options.h"

namespace sluice::cli {

void take_run(Command& command, RunArguments& into, std::string& resume) {
  take_pipeline(command, into.pipeline);
  command.option("--run-dir", into.run_folder, Values::written_folder(),
                 "the run folder (default: runs/NAME-TIME, with --resume runs/NAME)");
  command.option("--resume", resume, Values::one_of({"auto"}), "go on with what is in the run folder, or start");
  command.flag("--show-samples", into.show_samples_every,
               "show two prompts and responses of each iteration, or with --show-samples=20 of each 20th");
  command.flag("--accept-changes", into.accept_changes, "go on although the pipeline has changed in ways that change results");
}

}  // namespace sluice::cli
