#include "cli/sweep/sweep_check.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/process/machine.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "cli/process/core_shares.h"
#include "dsl/builtin.h"
#include "dsl/parse.h"
#include "engine/memory/memory_needs.h"
#include "engine/plan/pipeline_changes.h"
#include "engine/plan/saturating.h"

namespace sluice::cli {
namespace {

constexpr size_t kMostNamed = 4;  // combinations that have a problem

// What is wrong, and with which combinations.
class FoundProblems {
 public:
  explicit FoundProblems(const SweepGrid& grid) {
    for (const auto& values : combinations_of(grid)) names_.push_back(combination_name(grid, values));
  }

  void add(const Problem& problem, size_t combination) {
    const std::string text = render(problem);
    const auto [at, is_new] = places_.emplace(text, problems_.size());
    if (is_new) problems_.push_back({problem, {}});
    problems_[at->second].combinations.insert(combination);
  }

  Problems all() const {
    Problems all;
    for (const Found& found : problems_) {
      all.push_back(found.problem);
      all.back().notes.push_back(where(found.combinations));
    }
    return all;
  }

 private:
  struct Found {
    Problem problem;
    std::set<size_t> combinations;
  };

  std::string where(const std::set<size_t>& combinations) const {
    if (combinations.size() == names_.size()) return "in all runs of the sweep";
    std::vector<std::string> named;
    for (const size_t combination : combinations) {
      if (named.size() < kMostNamed) named.push_back(names_[combination]);
    }
    const size_t others = combinations.size() - named.size();
    return "in the runs with " + join(named, " and ") +
           (others == 0 ? "" : " and " + plural(static_cast<int64_t>(others), "other combination"));
  }

  std::vector<std::string> names_;
  std::vector<Found> problems_;
  std::map<std::string, size_t> places_;
};

// What runs take of the memory of the host or of a device, and what there is.
struct MemoryTaken {
  std::vector<int64_t> bytes;  // by run
  int64_t of_run = 0;          // so far, of the one that is added
  int64_t machine = 0;

  // So many of any of them fit at once.
  int fitting() const {
    int64_t sum = 0;
    int count = 0;
    while (count < static_cast<int>(bytes.size()) && (sum += bytes[static_cast<size_t>(count)]) <= machine) ++count;
    return count;
  }
};

class MemoryAtOnce {
 public:
  // Of a run with roles all ranks together.
  void add(const engine::Plan& plan) {
    for (const engine::MemoryNeed& need : engine::memory_needs(plan)) add(need);
    for (auto& [where, taken] : taken_)
      if (taken.of_run > 0) taken.bytes.push_back(std::exchange(taken.of_run, 0));
  }

  // A run alone was proven to fit.
  Problems problems(int parallel) {
    Problems found;
    for (auto& [where, taken] : taken_) {
      std::ranges::sort(taken.bytes, std::greater());
      const size_t at_once = std::min(static_cast<size_t>(parallel), taken.bytes.size());
      const int fitting = std::max(1, taken.fitting());
      if (taken.machine == 0 || static_cast<size_t>(fitting) >= at_once) continue;
      int64_t sum = 0;
      for (size_t i = 0; i < at_once; ++i) sum += taken.bytes[i];
      found.push_back({.where = {},
                       .message = std::to_string(at_once) + " runs at a time may need " + human_bytes(sum) + " of the " +
                                  human_bytes(taken.machine) + " of " + where,
                       .caret = {},
                       .notes = {},
                       .help = "--parallel " + std::to_string(fitting)});
    }
    return found;
  }

 private:
  // Ranks share out the devices of a name.
  void add(const engine::MemoryNeed& need) {
    const int64_t bytes = need.memory.total_bytes();
    MemoryTaken& taken = machine_of(need.is_host() ? "this machine" : need.place, need.memory);
    taken.of_run = need.is_host() ? engine::saturating_sum(taken.of_run, engine::saturating_product(need.ranks, bytes))
                                  : std::max(taken.of_run, bytes);
  }

  MemoryTaken& machine_of(const std::string& where, const engine::PlanMemory& memory) {
    MemoryTaken& taken = taken_[where];
    taken.machine = std::max(taken.machine, memory.machine_bytes);
    return taken;
  }

  std::map<std::string, MemoryTaken> taken_;
};

// A sweep that goes on was named by its folder, which a stranger may have made: what only a command line may say stays to be
// said, and no plugin lies beside what the user has named.
void refuse_what_is_to_be_typed(const std::filesystem::path& file, const SweptRun& run) {
  const engine::PipelineSpec spec = dsl::load_pipeline(file, run.sets).spec;
  const auto is_typed = [](const SourceSpan& where) { return where.known() && where.source->typed; };
  const engine::Entry* folder = spec.checkpoint.find("folder");
  const bool names_folder = folder != nullptr && is_typed(folder->value.where);
  const auto plugin = std::ranges::find_if(spec.plugins, [&](const engine::Name& one) { return is_typed(one.where); });
  if (!names_folder && plugin == spec.plugins.end()) return;
  throw UserError(
      std::string(kSweepFile) + " sets " + (names_folder ? "checkpoint.folder" : "plugins") + ", which only a command line may",
      "give the whole command that has begun the sweep again");
}

LoadedPipeline load_one(const SweepArguments& arguments, const SweptRun& run) {
  PipelineArguments pipeline = arguments.run.pipeline;
  pipeline.sets = run.sets;
  pipeline.ranks = 0;  // as many as its roles have
  if (arguments.goes_on) refuse_what_is_to_be_typed(pipeline.file, run);
  LoadedPipeline loaded = arguments.goes_on ? load_pipeline(pipeline) : load_to_launch(pipeline);
  const Problems refused = refused_by_a_run(loaded.warnings);
  if (!refused.empty()) throw UserError(refused);
  return loaded;
}

std::string pipeline_text(const std::filesystem::path& file) {
  return dsl::builtin_name(file.string()) ? file.string() : absolute_path(file).lexically_normal().string();
}

CheckedSweep checked_sweep(const SweepArguments& arguments, const SweepGrid& grid) {
  CheckedSweep sweep{.file = {.pipeline = pipeline_text(arguments.run.pipeline.file), .grid = grid, .effective = {}},
                     .runs = runs_of(grid),
                     .iterations = {},
                     .name = {},
                     .most_ranks = 1};
  FoundProblems found(grid);
  MemoryAtOnce memory;
  for (const SweptRun& run : sweep.runs) {
    try {
      const LoadedPipeline loaded = load_one(arguments, run);
      if (sweep.name.empty()) sweep.name = loaded.plan.pipeline.name;
      sweep.iterations.push_back(loaded.plan.pipeline.iterations);
      sweep.most_ranks = std::max(sweep.most_ranks, loaded.plan.ranks);
      sweep.file.effective.push_back(engine::keys_to_compare(loaded.plan));
      memory.add(loaded.plan);
    } catch (const UserError& error) {
      for (const Problem& problem : error.problems())
        if (problem.severity == Severity::kError) found.add(problem, run.combination);
    }
  }
  Problems problems = found.all();
  std::ranges::move(memory.problems(arguments.parallel), std::back_inserter(problems));
  if (!problems.empty()) throw UserError(problems);
  return sweep;
}

}  // namespace

CheckedSweep check_sweep(const SweepArguments& arguments, const SweepGrid& grid) {
  return on_cores(share_of_cores(cores_of_affinity(), 0, arguments.parallel), [&] { return checked_sweep(arguments, grid); });
}

// Runs with fewer iterations than others are no part of one sweep.
SweepChanges pipeline_changes_of(const SweepFile& before, const CheckedSweep& now) {
  SweepChanges changes;
  std::set<std::string> seen;
  for (size_t i = 0; i < now.runs.size(); ++i) {
    for (const engine::PipelineChange& change : engine::pipeline_changes(before.effective[i], now.file.effective[i])) {
      const std::string text = engine::change_text(change);
      const bool is_iterations = change.table == "pipeline" && change.key == "iterations";
      if (seen.insert(text).second) (change.harmless && !is_iterations ? changes.harmless : changes.others).push_back(text);
    }
  }
  return changes;
}

}  // namespace sluice::cli
