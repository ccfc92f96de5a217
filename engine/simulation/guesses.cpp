#include "engine/simulation/guesses.h"

#include <algorithm>
#include <cmath>

#include "base/text/strings.h"

namespace sluice::engine {
namespace {

constexpr double kLikelyEnough = 0.3;

/// What is guessed in a step of a sample, and what of it is right, on average.
struct StepGuesses {
  double drafted = 0, kept = 0;
};

StepGuesses guesses_at(double right, int64_t most) {
  if (right < kLikelyEnough) return {};
  const double worth = right >= 1 ? static_cast<double>(most) : std::floor(std::log(kLikelyEnough) / std::log(right) + 1e-9);
  const int64_t drafted = std::min(most, static_cast<int64_t>(std::min(worth, 1e6)));
  StepGuesses guesses{.drafted = static_cast<double>(drafted)};
  double all_right = 1;
  for (int64_t i = 0; i < drafted; ++i) guesses.kept += all_right *= right;
  return guesses;
}

double parameters_of(const Plan& plan, const std::string& name) {
  const PlanModel* const model = plan.find_model(name);
  return model == nullptr ? 0 : static_cast<double>(model->facts.parameters - model->facts.idle_parameters);
}

// Of the work of the model that is sampled from, the first that the node samples from.
double share_of_draft(const Plan& plan, const PlanNode& node, const std::string& draft) {
  const auto sampled = std::ranges::find(node.needs.models, ModelUse::kSamples, &ModelNeed::use);
  if (draft.empty() || sampled == node.needs.models.end()) return 0;
  const double all = parameters_of(plan, sampled->model);
  return all > 0 ? parameters_of(plan, draft) / all : 0;
}

std::string rate_text(const StepGuesses& guesses) {
  return fixed(guesses.kept, 2) + " of " + fixed(guesses.drafted, 2) + " tokens that are guessed of a sample in a step are right";
}

}  // namespace

std::vector<std::string> take_guesses(const Plan& plan, const std::map<std::string, GuessRules>& rules,
                                      std::optional<double> right, Costs& costs) {
  std::vector<std::string> notes;
  costs.guesses.clear();
  for (const PlanNode& node : plan.nodes) {
    const auto of = rules.find(node.name);
    const auto measured = costs.nodes.find(node.name);
    const NodeCosts known = measured == costs.nodes.end() ? NodeCosts() : measured->second;
    const bool was_measured = known.drafted_per_step > 0;
    if (of == rules.end()) {
      if (was_measured)
        notes.push_back("'" + node.name + "' guessed tokens where it was measured: what that took is in its times");
      continue;
    }
    const PlanPath& path = plan.path_of(plan.index_of(node.name));
    if (plan.takes_on_demand(node) || !path.rollout) continue;  // where it guesses nothing
    Guesses guesses{.samples = of->second.samples};
    if (right) {
      const StepGuesses assumed = guesses_at(*right, of->second.tokens);
      guesses.drafted_per_step = assumed.drafted, guesses.kept_per_step = assumed.kept;
      guesses.apart = !was_measured;
      guesses.draft_share = share_of_draft(plan, node, of->second.draft);
      notes.push_back("'" + node.name + "' guesses: with a share of " + fixed(*right, 2) + " taken to be right, " +
                      rate_text(assumed) + (was_measured ? "; what they cost is in its times" : ""));
    } else if (was_measured) {
      guesses.drafted_per_step = known.drafted_per_step, guesses.kept_per_step = known.kept_per_step;
      notes.push_back("'" + node.name +
                      "' guesses as it was measured: " + rate_text({known.drafted_per_step, known.kept_per_step}));
    } else {
      notes.push_back("'" + node.name +
                      "' guesses, and nothing says how often it is right: it is taken to guess nothing; "
                      "--guesses-right 0.7 says it, or the costs of a run that guessed");
      continue;
    }
    costs.guesses[node.name] = guesses;
  }
  return notes;
}

}  // namespace sluice::engine
