#include "cli/init/init_fit.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "dsl/parse.h"
#include "engine/check/check.h"
#include "engine/memory/memory_bound.h"
#include "engine/memory/memory_needs.h"

namespace sluice::cli {
namespace {

/// Tries pipelines until one fits into the memory.
class InitFit {
 public:
  InitFit(const engine::Registry& registry, std::string name, std::string folder)
      : registry_(registry), name_(std::move(name)), folder_(std::move(folder)) {}

  FittedPipeline fit(const InitPipeline& wanted) {
    for (const auto& [lora, bfloat16] : {std::pair{false, false}, {true, false}, {true, true}}) {
      InitPipeline tried = wanted;
      tried.lora = lora;
      tried.bfloat16 |= bfloat16;
      if (lora) tried.learning_rate *= kLoraRate, tried.critic_learning_rate *= kLoraRate;
      if (auto fitted = try_with_fewer_tokens(std::move(tried))) return std::move(*fitted);
    }
    if (tight_) return std::move(*tight_);
    throw UserError("the smallest pipeline that was tried, with adapters in bfloat16, needs " + human_bytes(least_) + " of " +
                        human_bytes(there_),
                    "take a smaller model; --memory-gib plans for a machine that has more");
  }

 private:
  std::optional<FittedPipeline> try_with_fewer_tokens(InitPipeline tried) {
    for (;;) {
      engine::CheckResult result = check(tried);
      const engine::Plan& plan = result.plan ? *result.plan : *result.too_large;
      const engine::MemoryNeed need = engine::tightest_need(plan);
      if (!result.plan) note(plan, need);
      const int64_t least = engine::least_tokens_of(plan, need);
      if (result.plan) {
        FittedPipeline fitted{tried, std::move(*result.plan), std::move(result.problems), too_much_};
        if (!is_tight(fitted.warnings)) return fitted;
        if (!tight_) tight_ = std::move(fitted);
      }
      if (tried.tokens_in_flight <= least) return std::nullopt;
      tried.tokens_in_flight = std::max(least, tried.tokens_in_flight * 3 / 4);
    }
  }

  static bool is_tight(const Problems& warnings) {
    return std::ranges::any_of(warnings, [](const Problem& problem) { return problem.kind == "memory-tight"; });
  }

  void note(const engine::Plan& plan, const engine::MemoryNeed& need) {
    const int64_t tokens = engine::least_tokens_of(plan, need);
    const int64_t bytes = engine::predict_memory(plan, tokens, need.rank, need.place).total_bytes();
    least_ = least_ == 0 ? bytes : std::min(least_, bytes);
    there_ = need.memory.machine_bytes;
    if (too_much_.empty()) too_much_ = human_bytes(need.memory.total_bytes()) + " of " + human_bytes(there_);
  }

  // A plan, or one that is too large. Throws UserError for all else.
  engine::CheckResult check(const InitPipeline& pipeline) const {
    dsl::LoadResult parsed = dsl::parse_pipeline(init_text(pipeline, name_), name_, folder_, {});
    engine::CheckResult result = engine::check(parsed.spec, registry_);
    std::ranges::move(parsed.problems, std::back_inserter(result.problems));
    std::erase_if(result.problems, [](const Problem& problem) { return problem.kind == "memory-too-small"; });
    if (result.plan) std::ranges::move(problems_of_data(*result.plan, parsed.spec, false), std::back_inserter(result.problems));
    if (has_errors(result.problems) || (!result.plan && !result.too_large)) throw UserError(result.problems);
    return result;
  }

  static constexpr double kLoraRate = 10;  // of the learning rate of all weights

  const engine::Registry& registry_;
  const std::string name_, folder_;
  std::optional<FittedPipeline> tight_;  // the first that fits, but leaves little memory
  std::string too_much_;
  int64_t least_ = 0, there_ = 0;
};

}  // namespace

FittedPipeline fit_pipeline_to_memory(const engine::Registry& registry, const InitPipeline& wanted, const std::string& file,
                                      const std::string& folder) {
  return InitFit(registry, file, folder).fit(wanted);
}

}  // namespace sluice::cli
