#include "cli/pipeline/vocabulary_check.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "models/config/config.h"
#include "nodes/columns/columns.h"
#include "nodes/models/model_text.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

bool handles_tokens(const engine::PlanNode& node) {
  const auto is_it = [](const engine::ColumnSpec& column) { return column.name == nodes::columns::kTokens.spec().name; };
  return std::ranges::any_of(node.needs.reads, is_it) || std::ranges::any_of(node.needs.writes, is_it);
}

// In the order of the pipeline.
std::vector<const engine::PlanModel*> models_on_tokens(const engine::Plan& plan) {
  std::set<std::string> names;
  for (const engine::PlanNode& node : plan.nodes) {
    if (!handles_tokens(node)) continue;
    for (const engine::ModelNeed& need : node.needs.models) names.insert(need.model);
  }
  std::vector<const engine::PlanModel*> models;
  for (const engine::PlanModel& model : plan.models) {
    if (names.contains(model.name) && !model.facts.folder.empty()) models.push_back(&model);
  }
  return models;
}

// Why two tokenizers do not mean the same by the same ids; empty: they do.
std::string difference(const fs::path& one, const fs::path& other) {
  const fs::path file = text::tokenizer_file_in(one), other_file = text::tokenizer_file_in(other);
  const bool says_all = file.extension() == ".json";  // beside a model of SentencePiece a config adds tokens
  if (says_all && read_file(file) == read_file(other_file)) return {};
  const text::Tokenizer first = text::Tokenizer::load(one), second = text::Tokenizer::load(other);
  if (first.vocab_size() != second.vocab_size())
    return std::to_string(first.vocab_size()) + " and " + std::to_string(second.vocab_size()) + " tokens";
  for (int64_t id = 0; id < first.vocab_size(); ++id) {
    if (first.id_to_token(id) != second.id_to_token(id)) return "token " + std::to_string(id) + " is not the same";
  }
  return {};
}

SourceSpan place_of(const engine::PipelineSpec& spec, const std::string& model) {
  for (const engine::ModelSpec& written : spec.models) {
    if (written.name.text != model) continue;
    const engine::Entry* checkpoint = written.params.find("checkpoint");
    return checkpoint != nullptr ? checkpoint->value.where : written.name.where;
  }
  return spec.where;
}

bool is_sampled(const engine::Plan& plan, const engine::PlanModel& model) {
  const auto samples_it = [&](const engine::ModelNeed& need) {
    return need.use == engine::ModelUse::kSamples && need.model == model.name;
  };
  return std::ranges::any_of(plan.nodes,
                             [&](const engine::PlanNode& node) { return std::ranges::any_of(node.needs.models, samples_it); });
}

// Prompts become tokens by it. A plan needs none.
void check_tokenizer(const engine::PlanModel& model, const engine::PipelineSpec& spec, Problems& problems) {
  try {
    const text::Tokenizer tokenizer = text::Tokenizer::load(model.facts.folder);
    nodes::sequence_ends(models::read_config(model.facts.folder), tokenizer, model.facts.folder);
  } catch (const UserError& error) {
    Problem problem = error.problems().front();
    problem.kind = "tokenizer-unusable";
    problem.notes.insert(problem.notes.begin(), "model '" + model.name + "' is sampled from, which takes its tokenizer");
    problem.severity = Severity::kWarning;
    problem.where = place_of(spec, model.name);
    problems.push_back(std::move(problem));
  }
}

}  // namespace

Problems check_vocabularies(const engine::Plan& plan, const engine::PipelineSpec& spec) {
  Problems problems;
  for (const engine::PlanModel& model : plan.models)
    if (!model.facts.folder.empty() && is_sampled(plan, model)) check_tokenizer(model, spec, problems);
  const auto models = models_on_tokens(plan);
  for (size_t i = 1; i < models.size(); ++i) {
    const engine::PlanModel &first = *models[0], &model = *models[i];
    if (model.facts.folder == first.facts.folder) continue;
    try {
      const std::string what = difference(first.facts.folder, model.facts.folder);
      if (what.empty()) continue;
      problems.push_back({.kind = "vocabularies-differ",
                          .where = place_of(spec, model.name),
                          .message = "models '" + first.name + "' and '" + model.name +
                                     "' work on the same tokens, but their vocabularies differ: " + what,
                          .caret = {},
                          .notes = {"'" + first.name + "' has that of " + first.facts.folder.string(),
                                    "'" + model.name + "' has that of " + model.facts.folder.string()},
                          .help = "give both a checkpoint of one family; --set models." + model.name + ".checkpoint=..."});
    } catch (const UserError&) {
      // Who loads the model says what is wrong with its folder.
    }
  }
  return problems;
}

}  // namespace sluice::cli
