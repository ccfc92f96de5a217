#include "cli/pipeline/draft_check.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/pipeline/guess_rules.h"
#include "cli/pipeline/spec_places.h"
#include "models/config/config.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {
namespace {

constexpr const char* kDraftKey = "draft";  // of `generate`

/// A node, the model that it samples from, and the one that guesses.
struct DraftUse {
  const engine::PlanNode& node;
  const engine::PlanModel& model;
  const engine::PlanModel& draft;
};

std::optional<DraftUse> draft_use(const engine::Plan& plan, const engine::PlanNode& node) {
  const engine::PlanModel *model = nullptr, *draft = nullptr;
  for (const engine::ModelNeed& need : node.needs.models) {
    if (need.use != engine::ModelUse::kSamples) continue;
    (need.param == kDraftKey ? draft : model) = plan.find_model(need.model);
  }
  if (model == nullptr || draft == nullptr) return std::nullopt;
  return DraftUse{node, *model, *draft};
}

const engine::PlanNode* trainer_of(const engine::Plan& plan, const std::string& model) {
  const auto trains = [&](const engine::PlanNode& node) {
    return std::ranges::any_of(node.needs.models, [&](const engine::ModelNeed& need) {
      return need.model == model && need.use == engine::ModelUse::kUpdates;
    });
  };
  const auto found = std::ranges::find_if(plan.nodes, trains);
  return found == plan.nodes.end() ? nullptr : &*found;
}

// Rows of the embedding, which may be more than the tokenizer has tokens.
int64_t vocabulary_of(const engine::PlanModel& model) { return models::read_config(model.facts.folder).vocab_size; }

// How many tokens they have, where that is not the same although their tokenizers have as many. What cannot be read others say.
std::string vocabularies_text(const DraftUse& use) {
  try {
    if (use.model.facts.folder.empty() || use.draft.facts.folder.empty()) return {};
    const int64_t tokens = vocabulary_of(use.model), of_draft = vocabulary_of(use.draft);
    if (tokens == of_draft) return {};
    const auto tokenizer_of = [](const engine::PlanModel& model) {
      return text::Tokenizer::load(model.facts.folder).vocab_size();
    };
    if (tokenizer_of(use.model) != tokenizer_of(use.draft)) return {};
    return std::to_string(of_draft) + " tokens; model '" + use.model.name + "' has " + std::to_string(tokens);
  } catch (const UserError&) {
    return {};
  }
}

Problem problem(const char* kind, const DraftUse& use, const std::string& message, const std::string& help) {
  return {
      .kind = kind, .message = "'" + use.node.name + "' guesses with model '" + use.draft.name + "', " + message, .help = help};
}

Problem guesses_nothing(const engine::PlanNode& node, const engine::PipelineSpec& spec) {
  return {.kind = "setting-without-effect",
          .where = place_in_node(spec, node.name, "speculation"),
          .message = "'" + node.name + "' guesses, but with admission = \"on_demand\" nothing is guessed",
          .help = "remove speculation, or admission in [budget]"};
}

std::optional<Problem> problem_of(const engine::Plan& plan, const DraftUse& use) {
  const std::string& draft = use.draft.name;
  if (const engine::PlanNode* trainer = trainer_of(plan, draft))
    return problem("setting-unusable", use, "which '" + trainer->name + "' trains: a model that guesses is frozen",
                   "a second table with the same checkpoint, such as [models.draft], without optimizer");
  if (const std::string differ = vocabularies_text(use); !differ.empty())
    return problem("vocabularies-differ", use, "which has " + differ,
                   "a draft of the same family, with the same \"vocab_size\" in config.json");
  if (use.draft.facts.device != use.model.facts.device)
    return problem("setting-unusable", use,
                   "which is on " + use.draft.facts.device + "; model '" + use.model.name + "' is on " + use.model.facts.device,
                   "device = \"" + use.model.facts.device + "\" in [models." + draft + "]");
  if (plan.sampling_ranks() > 1)
    return problem("setting-unusable", use,
                   "which the " + std::to_string(plan.sampling_ranks()) + " ranks that sample together cannot share",
                   "remove draft and take speculation = \"ngrams\", or remove tensor_parallel in [cluster]");
  if (plan.takes_on_demand(use.node))
    return problem("setting-without-effect", use, "but with admission = \"on_demand\" nothing is guessed",
                   "remove draft, or admission in [budget]");
  return std::nullopt;
}

}  // namespace

Problems check_drafts(const engine::Plan& plan, const engine::PipelineSpec& spec) {
  Problems problems;
  const auto guesses = guess_rules(plan);
  for (const engine::PlanNode& node : plan.nodes) {
    const std::optional<DraftUse> use = draft_use(plan, node);
    if (!use && guesses.contains(node.name) && plan.takes_on_demand(node)) problems.push_back(guesses_nothing(node, spec));
    if (!use) continue;
    std::optional<Problem> found = problem_of(plan, *use);
    if (!found) continue;
    found->where = place_in_node(spec, node.name, kDraftKey);
    problems.push_back(std::move(*found));
  }
  return problems;
}

}  // namespace sluice::cli
