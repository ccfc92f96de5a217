#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file_system.h"
#include "base/process/machine.h"
#include "base/process/program_path.h"
#include "base/process/world_environment.h"
#include "cli/command/run_words.h"
#include "cli/launch/commands.h"
#include "cli/launch/launch.h"
#include "cli/pipeline/load.h"
#include "cli/process/core_shares.h"
#include "cli/process/run_signals.h"
#include "cli/process/started_once.h"
#include "cli/run/open_files.h"
#include "cli/run/run.h"
#include "cli/run_folder/resume_point.h"
#include "cli/run_folder/run_folder.h"
#include "cli/run_folder/run_lock.h"
#include "comm/sockets.h"
#include "dsl/parse.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace {

int ranks_of_roles(const PipelineArguments& pipeline) {
  const LoadedPipeline loaded = load_to_launch(pipeline);
  if (!loaded.plan.all_roles().empty()) return loaded.plan.ranks;
  throw UserError("how many ranks to launch is not said, and the pipeline has no roles",
                  "rlhf-run launch --ranks N " + pipeline.file.string());
}

// A run folder that was made to have its name. It goes where no rank has come so far as to write into it.
class TakenFolder {
 public:
  explicit TakenFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~TakenFolder() { disk().remove_folder(folder_); }  // only when it is empty
  TakenFolder(const TakenFolder&) = delete;
  TakenFolder& operator=(const TakenFolder&) = delete;

 private:
  const std::filesystem::path folder_;
};

struct Checked {
  RunArguments run;
  std::unique_ptr<TakenFolder> taken;   // null: the folder was named
  RankRange expendable;                 // see LaunchOptions
  std::chrono::milliseconds notice{0};  // likewise
};

// They find out that one is lost by its signs, and when the first to tell is lost as well, once more; then they say so, and end.
std::chrono::milliseconds time_to_end(const engine::Plan& plan) {
  constexpr double kToEnd = 4, kLeast = 12;
  const double seconds = std::max(kLeast, 2 * plan.cluster.dead_after_seconds + kToEnd);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

Checked with_run_folder(RunArguments run, int ranks) {
  run.pipeline.ranks = ranks;
  const LoadedPipeline loaded = load_to_launch(run.pipeline);
  require_open_files(loaded.plan, ranks);
  std::unique_ptr<TakenFolder> taken;
  if (run.run_folder.empty()) {
    run.run_folder = default_run_folder(loaded.plan.pipeline.name, run.may_go_on);
    if (!run.may_go_on) taken = std::make_unique<TakenFolder>(run.run_folder);
  }
  return {.run = std::move(run),
          .taken = std::move(taken),
          .expendable = loaded.plan.expendable(),
          .notice = time_to_end(loaded.plan)};
}

// As rank 0 will listen there.
void require_free(int port) {
  try {
    comm::listen_on("127.0.0.1", port, /*everywhere=*/false);
  } catch (const UserError& error) {
    throw UserError("--port " + std::to_string(port) + ": " + error.message(),
                    "name another port, or leave --port out: then it is one that is free");
  }
}

// Only once, so that all ranks have the same folder. What is wrong with the pipeline is said once too, before any of them is
// there: with the cores of rank 0, of which no rank has fewer.
Checked checked_for_ranks(const LaunchArguments& arguments) {
  return on_cores(share_of_cores(cores_of_affinity(), 0, arguments.ranks),
                  [&] { return with_run_folder(arguments.run, arguments.ranks); });
}

// Rank 0 locks the folder when all ranks have met.
std::function<bool(int64_t)> begins_in(const std::filesystem::path& folder) {
  return [folder](int64_t rank_0) { return is_locked_by(rank_0, folder); };
}

// `words`: the command line of each rank, without the program.
int started(std::vector<std::string> words, LaunchOptions options) {
  words.insert(words.begin(), program_path().string());
  options.words = std::move(words);
  options.blocked = {SIGUSR1};  // is passed on also while a rank is being loaded
  return Launch(options).wait();
}

// Whether the pipeline has roles, and this process is none of their ranks. One that cannot be read has none.
bool is_to_be_launched(const std::filesystem::path& file, const std::vector<std::string>& sets) {
  if (world_environment()) return false;
  try {
    return !dsl::load_pipeline(file, sets).spec.roles.empty();
  } catch (const UserError&) {
    return false;  // who runs it says what is wrong
  }
}

// On as many ranks as the roles have, each of them `rlhf-run resume`. What is wrong is said once, as in checked_for_ranks().
int launch_again(const ResumeArguments& arguments) {
  const RunSignals from_now_on;
  const auto load = [&](int ranks) {
    return load_to_go_on(arguments.run_folder,
                         {.file = arguments.run_folder / engine::kPipelineFile,
                          .sets = arguments.sets,
                          .ranks = ranks,
                          .plugins = arguments.plugins},
                         Says::kNothing);
  };
  if (arguments.from) point_at(arguments.run_folder, *arguments.from);  // throws where it is not there
  const int ranks = load(/*as many as its roles have*/ 0).plan.ranks;
  const LoadedPipeline loaded = on_cores(share_of_cores(cores_of_affinity(), 0, ranks), [&] { return load(ranks); });
  require_open_files(loaded.plan, ranks);
  return started(words_of(arguments), {.words = {},
                                       .ranks = ranks,
                                       .port = 0,
                                       .expendable = loaded.plan.expendable(),
                                       .restarts = LaunchArguments{}.restarts,
                                       .has_begun = begins_in(arguments.run_folder),
                                       .notice = time_to_end(loaded.plan)});
}

}  // namespace

int run_or_launch(const RunArguments& arguments) {
  const RunSignals from_now_on;
  if (is_to_be_launched(arguments.pipeline.file, arguments.pipeline.sets)) return launch_pipeline({.run = arguments});
  return run_here(arguments);
}

int resume_or_launch(const ResumeArguments& arguments) {
  const RunSignals from_now_on;
  if (is_to_be_launched(arguments.run_folder / engine::kPipelineFile, arguments.sets)) return launch_again(arguments);
  return resume_here(arguments);
}

int launch_pipeline(const LaunchArguments& given) {
  const RunSignals from_now_on;
  LaunchArguments arguments = given;
  if (arguments.ranks == 0) arguments.ranks = ranks_of_roles(arguments.run.pipeline);
  if (arguments.ranks == 1 && !is_to_be_launched(arguments.run.pipeline.file, arguments.run.pipeline.sets))
    return run_here(arguments.run);
  require_to_be_started_once("rlhf-run launch would start more of them for each",
                             "start the ranks of several machines without it: rlhf-run run FILE");
  if (arguments.port > 0) require_free(arguments.port);
  const Checked checked = checked_for_ranks(arguments);
  return started(words_of(checked.run), {.words = {},
                                         .ranks = arguments.ranks,
                                         .port = arguments.port,
                                         .expendable = checked.expendable,
                                         .restarts = arguments.restarts,
                                         .has_begun = begins_in(checked.run.run_folder),
                                         .notice = checked.notice});
}

}  // namespace sluice::cli
