#include "cli/plan/fit_search.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "dsl/parse.h"
#include "engine/check/check.h"
#include "engine/simulation/cost_model.h"
#include "engine/simulation/simulation.h"

namespace sluice::cli {
namespace {

using engine::MemoryNeed;
using engine::Plan;

constexpr size_t kMostChecks = 2000;
constexpr size_t kMostRemedies = 20;
constexpr double kGigaflops = 20;  // of a core: it compares ways with each other

struct Candidate {
  std::optional<Plan> plan;  // nothing: something else than its memory is wrong
  bool fits = false;
};

// The first iterations, which are as long as the others.
double iteration_seconds(const Plan& plan) {
  const engine::SimulationResult result = engine::simulate(plan, engine::estimated_costs(plan, kGigaflops));
  return result.seconds / static_cast<double>(std::max<int64_t>(1, result.iterations));
}

// "budget.tokens_in_flight=N" of each that is too tight; nothing: fewer tokens are not enough.
std::optional<std::vector<std::string>> fewer_tokens(const Plan& plan) {
  std::vector<std::string> sets;
  for (const MemoryNeed& need : engine::memory_needs(plan)) {
    if (need.fits()) continue;
    const int64_t tokens = engine::tokens_that_fit(plan, need);
    if (tokens == 0) return std::nullopt;
    const std::string table = need.role.empty() ? "budget" : "cluster.roles." + need.role;
    sets.push_back(table + ".tokens_in_flight=" + std::to_string(tokens));
  }
  return sets;
}

class FitSearch {
 public:
  FitSearch(const PipelineArguments& arguments, const SizedPipeline& pipeline) : arguments_(arguments), pipeline_(pipeline) {}

  Fit search() {
    fit_.need = fit_.least = engine::tightest_need(pipeline_.plan);
    fit_.fits = pipeline_.fits;
    fit_.iteration_seconds = seconds_of({});
    for (Remedy& remedy : remedies_for(pipeline_.plan, pipeline_.spec))
      if (fit_.remedies.size() < kMostRemedies) fit_.remedies.push_back({.remedy = std::move(remedy), .need = fit_.need});
    try_each_alone();
    if (!fit_.fits) try_together();
    std::ranges::stable_sort(fit_.ways, {}, &Fit::Way::iteration_seconds);
    return std::move(fit_);
  }

 private:
  using Set = uint32_t;  // of remedies, by bit

  static bool has(Set set, size_t remedy) { return (set >> remedy & 1) != 0; }

  Set with_needed(Set set) const {
    for (size_t i = 0; i < fit_.remedies.size(); ++i)
      if (has(set, i) && fit_.remedies[i].remedy.with) set |= Set{1} << *fit_.remedies[i].remedy.with;
    return set;
  }

  std::vector<std::string> sets_of(Set set) const {
    std::vector<const Remedy*> remedies;
    for (size_t i = 0; i < fit_.remedies.size(); ++i)
      if (has(set, i)) remedies.push_back(&fit_.remedies[i].remedy);
    return sets_together(remedies);
  }

  Candidate check(const std::vector<std::string>& more) const {
    std::vector<std::string> sets = arguments_.sets;
    std::ranges::copy(more, std::back_inserter(sets));
    dsl::LoadResult parsed = dsl::load_pipeline(arguments_.file, sets);
    if (has_errors(parsed.problems)) return {};
    engine::CheckResult result = engine::check(parsed.spec, *pipeline_.registry, arguments_.ranks);
    if (result.plan) return {std::move(result.plan), true};
    return {std::move(result.too_large), false};
  }

  double seconds_of(std::vector<std::string> sets) const {
    constexpr int64_t kIterations = 4;
    const int64_t iterations = std::min(kIterations, pipeline_.plan.pipeline.iterations);
    sets.push_back("pipeline.iterations=" + std::to_string(iterations));
    const Candidate candidate = check(sets);
    return iteration_seconds(candidate.plan ? *candidate.plan : pipeline_.plan);
  }

  void note(const MemoryNeed& need) {
    if (need.memory.total_bytes() < fit_.least.memory.total_bytes()) fit_.least = need;
  }

  void try_each_alone() {
    for (size_t i = 0; i < fit_.remedies.size(); ++i) {
      const Candidate candidate = check(sets_of(with_needed(Set{1} << i)));
      fit_.remedies[i].possible = candidate.plan.has_value();
      if (candidate.plan) fit_.remedies[i].need = engine::tightest_need(*candidate.plan);
    }
  }

  bool is_impossible(Set set) const {
    for (size_t i = 0; i < fit_.remedies.size(); ++i)
      if (has(set, i) && !fit_.remedies[i].possible) return true;
    return false;
  }

  void try_together() {
    const size_t count = fit_.remedies.size();
    std::vector<Set> sets;
    for (Set set = 0; set < Set{1} << count; ++set)
      if (with_needed(set) == set && !is_impossible(set)) sets.push_back(set);
    std::ranges::stable_sort(sets, {}, [](Set set) { return std::popcount(set); });
    for (const Set set : sets) {
      const bool has_more_than_needed = std::ranges::any_of(enough_, [&](Set enough) { return (set & enough) == enough; });
      if (has_more_than_needed) continue;
      if (++checks_ > kMostChecks) return;
      try_set(set);
    }
  }

  void try_set(Set set) {
    const std::vector<std::string> sets = sets_of(set);
    const Candidate candidate = check(sets);
    if (!candidate.plan) return;
    note(engine::tightest_need(*candidate.plan));
    if (candidate.fits) {
      enough_.push_back(set);
      return add_way(set, sets, *candidate.plan, false);
    }
    const auto fewer = fewer_tokens(*candidate.plan);
    if (!fewer) return;
    std::vector<std::string> all = sets;
    std::ranges::copy(*fewer, std::back_inserter(all));
    const Candidate smaller = check(all);
    if (smaller.fits) add_way(set, all, *smaller.plan, true);
  }

  void add_way(Set set, const std::vector<std::string>& sets, const Plan& plan, bool fewer_tokens) {
    const bool is_less = std::ranges::any_of(fit_.ways, [&](const Fit::Way& way) {  // as little is enough, with fewer tokens too
      return fewer_tokens && way.fewer_tokens && std::ranges::all_of(way.remedies, [&](size_t i) { return has(set, i); });
    });
    if (is_less) return;
    Fit::Way way{.remedies = {},
                 .sets = sets,
                 .fewer_tokens = fewer_tokens,
                 .need = engine::tightest_need(plan),
                 .iteration_seconds = seconds_of(sets)};
    for (size_t i = 0; i < fit_.remedies.size(); ++i)
      if (has(set, i)) way.remedies.push_back(i);
    fit_.ways.push_back(std::move(way));
  }

  const PipelineArguments& arguments_;
  const SizedPipeline& pipeline_;
  Fit fit_;
  std::vector<Set> enough_;  // with all tokens
  size_t checks_ = 0;
};

}  // namespace

Fit search_fit(const PipelineArguments& arguments, const SizedPipeline& pipeline) {
  return FitSearch(arguments, pipeline).search();
}

}  // namespace sluice::cli
