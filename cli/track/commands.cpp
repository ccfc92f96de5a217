#include "cli/track/commands.h"

#include <memory>

#include "engine/contract/settings.h"

namespace sluice::cli {

void add_track_command(Command& program) {
  Command& track = program.add("track", "tell experiment trackers what a run folder has that they do not know yet",
                               {"rlhf-run track runs/ppo-20260131-180000 --to wandb",
                                "rlhf-run track runs/ppo --to mlflow --to tensorboard --project sums"});
  const auto taken = std::make_shared<TrackArguments>();
  track.argument("run", taken->run_folder, Values::folder(), "the run folder").required();
  track.list("--to", taken->trackers, Values::one_of(engine::known_trackers()), "a tracker (may be repeated)").required();
  track.option("--project", taken->project, Values::any("NAME"),
               "what they file it under (default: [log] project of the run, or its pipeline's name)");
  track.runs([taken] { return track_run(*taken); });
}

}  // namespace sluice::cli
