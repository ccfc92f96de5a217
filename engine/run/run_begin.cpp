#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/files/folder.h"
#include "base/text/strings.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/checkpoint_room.h"
#include "engine/checkpoint/checkpoints_place.h"
#include "engine/memory/out_of_memory.h"
#include "engine/observe/trace_cut.h"
#include "engine/run/resume.h"
#include "engine/run/run_impl.h"

// How a run comes into being: models, nodes and files, anew or as a checkpoint has them.
namespace sluice::engine {

Run::Impl::Impl(const Plan& plan_, RunOptions options_)
    : plan(plan_),
      options(std::move(options_)),
      confined(writable_folders(plan, options.folder, options.writes_folder), options.files),
      folder{.path = options.folder, .files = &confined, .is_ours = options.writes_folder},
      reductions(options.reductions != nullptr ? *options.reductions : one_process),
      meter(options.tensors) {
  if (writes() && plan.checkpoint.folder) make_folders(*plan.checkpoint.folder, options.files);
  if (!options.resume_from.empty()) rewind();
  Workload workload = loaded();
  meter.watch(plan, workload.models);
  if (options.passes != nullptr) {
    for (const auto& [name, model] : workload.models) shared_models.push_back(model);
  }
  SavedModels models = trained_models(plan, workload.models);
  if (manifest) {
    restore(workload, models, plan, options.resume_from, *manifest,
            [this](const Problems& problems) { judge_unusable_state(problems); });
  }
  if (!plan.trains(reductions.world().rank)) models.clear();  // those that train them save them
  if (writes()) {
    open_files();
    begin_checkpoints(std::move(models));
  } else if (!options.folder.empty()) {
    if (plan.trains(reductions.world().rank))
      own_parts.emplace(OwnParts::Parts{plan, options.folder, std::move(models), confined, reductions});
    rank_trace.emplace(reductions.world().rank, plan.executors.size(), clock.begin_ns());
    if (plan.has_roles()) rank_costs.emplace(plan, reductions.world().rank);
  }
  if (options.comes_in) first_version = options.comes_in();
  driver.emplace(plan, driver_parts(std::move(workload)));
}

// Before nodes are made, since they append to files.
void Run::Impl::rewind() {
  manifest = read_manifest(options.resume_from);
  refuse_changes(*manifest, plan, options.accept_changes);
  if (!writes()) return;
  const auto tell = [this](const std::string& warning) { warn(warning); };
  manifest->growing = known_growing_files(*manifest, plan, options.accept_changes, tell);
  for (const auto& [name, bytes] : std::map(manifest->growing)) {
    if (!is_gone_event_file(options.folder, name)) continue;
    warn((options.folder / name).string() + " is gone, and with it what TensorBoard shows of what came before");
    manifest->growing.erase(name);
  }
  rewind_folder({.folder = folder,
                 .checkpoints = checkpoints_folder(options.folder, plan.checkpoint),
                 .checkpoint = options.resume_from,
                 .iterations = manifest->iterations,
                 .growing = manifest->growing},
                tell);
  trace_begin_ns = cut_trace(options.folder / kTraceFile, manifest->iterations, confined);
}

// Other data, which need a word, have no place where the old ones were.
void Run::Impl::judge_unusable_state(const Problems& problems) {
  if (!options.accept_changes) throw UserError(problems);
  for (const Problem& problem : problems) warn(problem.message + "; it begins afresh");
}

void Run::Impl::open_files() {
  files.emplace(RunFiles::Parts{.plan = plan,
                                .folder = folder,
                                .trace_begin_ns = trace_begin_ns,
                                .grown = manifest ? manifest->growing : std::map<std::string, int64_t>(),
                                .on_warning = [this](const std::string& warning) { warn_of_file(warning); }});
  if (plan.ranks > 1) files->name_process_in_trace(name_of_rank(0));
}

void Run::Impl::begin_checkpoints(SavedModels models) {
  const bool saves = !manifest || manifest->iterations < plan.pipeline.iterations;
  if (const auto lack = saves ? lack_of_room(plan, options.folder) : std::nullopt) warn(*lack);
  checkpointer.emplace(
      Checkpointer::Parts{.plan = plan,
                          .clock = clock,
                          .begun = manifest ? manifest->iterations : 0,
                          .last = options.resume_from,
                          .reductions = reductions,
                          .writer = {.plan = plan,
                                     .run_folder = options.folder,
                                     .models = std::move(models),
                                     .files = confined,
                                     .on_warning = [this](const std::string& warning) { warn_of_file(warning); }},
                          .before_write = [this] { files->flush_trace(); },
                          .on_failure = [this](std::exception_ptr error) { driver->state().failure.capture(std::move(error)); }});
}

Workload Run::Impl::loaded() {
  try {
    return make_workload(plan, folder, {reductions, options.common_memory, publications_of(options.links), options.passes});
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    meter.sample(0, {});
    throw explained({.where = {},
                     .message = "there is not enough memory to load the models and make the nodes",
                     .caret = {},
                     .notes = {std::string(first_line(error.what()))},
                     .help = {}},
                    plan, memory());
  }
}

Driver::Parts Run::Impl::driver_parts(Workload workload) {
  return {.workload = std::move(workload),
          .clock = clock,
          .reductions = reductions,
          .links = options.links,
          .checkpointer = checkpointer ? &*checkpointer : nullptr,
          .own_parts = own_parts ? &*own_parts : nullptr,
          .begun = first_version ? *first_version + plan.schedule.policy_lag
                   : manifest    ? manifest->iterations
                                 : 0,
          .first_version = first_version,
          .stop_rule = stop_rule(),
          .observers = observers(),
          .on_iteration = [this](const IterationReport& report) { report_iteration(report); },
          .measure = [this] { return measured_memory(); },
          .tell = [this] { return tell(); },
          .hear = [this](const std::string& told) { hear(told); },
          .replaced = options.replaced};
}

std::optional<StopRule> Run::Impl::stop_rule() const {
  if (!plan.pipeline.stop_when) return {};
  StopRule rule(*plan.pipeline.stop_when);
  if (manifest) show_past(rule, plan, options.folder / kMetricsFile, manifest->iterations);
  return rule;
}

std::vector<WorkObserver*> Run::Impl::observers() {
  std::vector<WorkObserver*> all = options.observers;
  if (files) std::ranges::copy(files->observers(), std::back_inserter(all));
  if (rank_trace) all.push_back(&*rank_trace);
  if (rank_costs) all.push_back(&*rank_costs);
  return all;
}

}  // namespace sluice::engine
