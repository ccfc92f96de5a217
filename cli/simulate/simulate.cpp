#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/pipeline/guess_rules.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/simulate/commands.h"
#include "cli/simulate/simulate_progress.h"
#include "cli/simulate/simulate_text.h"
#include "engine/observe/trace.h"
#include "engine/schedule/state/failure.h"
#include "engine/simulation/cost_model.h"
#include "engine/simulation/guesses.h"
#include "engine/simulation/simulation.h"

namespace sluice::cli {
namespace {

// `file`: of its trace; empty: none is written.
engine::SimulationResult simulate_and_show(const engine::Plan& plan, const engine::Costs& costs, const std::string& name,
                                           const std::filesystem::path& file) {
  SimulateProgress progress(name, plan.pipeline.iterations);
  const auto on_iterations = [&](int64_t done) { progress.show(done); };
  if (file.empty()) return engine::simulate(plan, costs, {}, on_iterations);
  engine::FailureSlot failure;
  engine::TraceWriter trace(
      file, plan, /*begin_ns=*/0, [&] { failure.capture(); }, disk());
  engine::SimulationResult result = engine::simulate(plan, costs, {&trace}, on_iterations);
  trace.close();
  failure.rethrow();
  return result;
}

// "A=1 B=2": a space separates two settings where a key and = follow, outside of strings, arrays and tables.
std::vector<std::string> settings_of(const std::string& what_if) {
  const auto begins_setting = [&](size_t at) {
    const size_t end = what_if.find_first_of("= \"'[{", at);
    return end != std::string::npos && end > at && what_if[end] == '=';
  };
  std::vector<std::string> settings(1);
  char quote = 0;
  int depth = 0;
  for (size_t i = 0; i < what_if.size(); ++i) {
    const char c = what_if[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
      if (c == ' ' && depth == 0 && begins_setting(i + 1)) {
        settings.emplace_back();
        continue;
      }
    }
    settings.back() += c;
  }
  return settings;
}

// What is wrong with a setting of --what-if is told of that one.
LoadedPipeline load_what_if(const PipelineArguments& with, const std::vector<std::string>& settings) {
  try {
    return load_pipeline(with);
  } catch (const UserError& error) {
    Problems problems = error.problems();
    for (Problem& problem : problems) {
      const bool is_at_it = problem.where.known() && problem.where.source->typed &&
                            std::ranges::find(settings, problem.where.source->text) != settings.end();
      if (!settings.empty() && !is_at_it) problem.notes.push_back("with --what-if " + join(settings, " "));
      if (!is_at_it) continue;
      SourceText source = *problem.where.source;
      source.name = "--what-if";
      problem.where.source = std::make_shared<const SourceText>(std::move(source));
    }
    throw UserError(problems);
  }
}

constexpr const char* kOfAssistance =
    "ranks share passes or steps of sampling (sequence_parallel, tensor_parallel): measured costs have that in them only "
    "where it was measured so";

// A variant before it is simulated. Without a setting it is the pipeline as it is.
struct Candidate {
  std::string setting;
  LoadedPipeline loaded;

  bool is_base() const { return setting.empty(); }
};

Candidate load_variant(const SimulateArguments& arguments, const std::string& setting) {
  PipelineArguments with = arguments.pipeline;
  if (arguments.iterations > 0) with.sets.push_back("pipeline.iterations=" + std::to_string(arguments.iterations));
  const std::vector<std::string> what_if = setting.empty() ? std::vector<std::string>() : settings_of(setting);
  std::ranges::copy(what_if, std::back_inserter(with.sets));
  return {setting, load_what_if(with, what_if)};
}

// Before any is simulated, which may take long: so all that is wrong is told at once, and costs nobody the results of others.
std::vector<Candidate> load_variants(const SimulateArguments& arguments) {
  std::vector<Candidate> variants;
  variants.push_back(load_variant(arguments, {}));
  Problems problems;
  for (const std::string& setting : arguments.what_ifs) {
    try {
      variants.push_back(load_variant(arguments, setting));
    } catch (const UserError& error) {
      std::ranges::copy(error.problems(), std::back_inserter(problems));
    }
  }
  if (!problems.empty()) throw UserError(problems);
  print_warnings(variants.front().loaded.warnings);
  return variants;
}

SimulationView::Variant simulate_variant(const SimulateArguments& arguments, const std::optional<engine::Costs>& measured,
                                         const Candidate& candidate) {
  const engine::Plan& plan = candidate.loaded.plan;
  engine::Costs costs = measured ? *measured : engine::estimated_costs(plan, arguments.gflops);
  const auto rules = guess_rules(plan);
  const std::vector<std::string> notes = engine::take_guesses(plan, rules, arguments.guesses_right, costs);
  const std::string name = plan.pipeline.name + (candidate.is_base() ? "" : " with " + candidate.setting);
  const std::filesystem::path trace = candidate.is_base() ? arguments.trace : std::filesystem::path();
  SimulationView::Variant variant{candidate.setting, simulate_and_show(plan, costs, name, trace), plan.ranks, !rules.empty()};
  std::ranges::copy(notes, std::back_inserter(variant.result.notes));
  if (measured && (plan.pass_ranks() > 1 || plan.sampling_ranks() > 1)) variant.result.notes.push_back(kOfAssistance);
  return variant;
}

}  // namespace

int simulate_pipeline(const SimulateArguments& arguments) {
  if (std::ranges::find(arguments.what_ifs, std::string()) != arguments.what_ifs.end())
    throw UserError("--what-if is empty", "--what-if KEY=VALUE, for example --what-if schedule.policy_lag=1");
  std::optional<engine::Costs> measured;
  if (!arguments.costs.empty()) measured = engine::read_costs(arguments.costs);
  SimulationView view;
  if (measured) {
    view.costs_from = arguments.costs.string();
    view.measured_seconds = measured->seconds;
    view.measured_iterations = measured->iterations;
  } else {
    view.gflops = arguments.gflops;
  }
  const std::vector<Candidate> candidates = load_variants(arguments);
  view.pipeline = candidates.front().loaded.plan.pipeline.name;
  for (const Candidate& candidate : candidates) view.variants.push_back(simulate_variant(arguments, measured, candidate));
  if (arguments.guesses_right && std::ranges::none_of(view.variants, &SimulationView::Variant::guesses))
    throw UserError("--guesses-right has no effect: no node of the pipeline guesses tokens",
                    "remove it, or set speculation = \"ngrams\" or \"draft\" in a node that samples");

  std::fputs((arguments.format == "json" ? simulation_json(view) : simulation_text(view)).c_str(), stdout);
  bool stalls = false;
  for (const SimulationView::Variant& variant : view.variants) {
    if (!variant.result.stall) continue;
    stalls = true;
    std::fprintf(stderr, "%s", render(*variant.result.stall).c_str());
  }
  return stalls ? kFailed : kDone;
}

}  // namespace sluice::cli
