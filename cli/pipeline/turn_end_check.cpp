#include "cli/pipeline/turn_end_check.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/pipeline/spec_places.h"
#include "models/config/config.h"
#include "nodes/columns/columns.h"
#include "nodes/models/model_text.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// The model that samples what a chat template wrote; null: nothing does, or nothing is to end a sample.
const engine::ModelNeed* sampled_for_chats(const engine::Plan& plan, const engine::PlanNode& node) {
  const auto reads_messages = [](const engine::ColumnSpec& column) {
    return column.name == nodes::columns::kMessages.spec().name;
  };
  if (std::ranges::none_of(node.needs.reads, reads_messages)) return nullptr;
  const bool is_endless = std::ranges::any_of(plan.effective, [&](const engine::EffectiveKey& key) {
    return key.table == "nodes." + node.name && key.key == "ignore_end_of_sequence" && key.text == "true";
  });
  const auto model = std::ranges::find(node.needs.models, engine::ModelUse::kSamples, &engine::ModelNeed::use);
  return is_endless || model == node.needs.models.end() ? nullptr : &*model;
}

// The special token that the template writes after what the assistant says; nothing where there is none.
std::optional<int64_t> turn_end(const fs::path& folder, const text::Tokenizer& tokenizer) {
  const std::string said = "An answer.";
  Json messages = Json::array();
  messages.push_back({{"role", "user"}, {"content", "A question?"}});
  messages.push_back({{"role", "assistant"}, {"content", said}});
  const std::string chat = text::ChatTemplate::load(folder).render(messages);
  const size_t at = chat.rfind(said);
  if (at == std::string::npos) return std::nullopt;
  const std::vector<int64_t> ids = tokenizer.encode(chat.substr(at + said.size()));
  const auto found = std::ranges::find_if(ids, [&](int64_t id) { return tokenizer.is_special(id); });
  return found == ids.end() ? std::nullopt : std::optional(*found);
}

std::string name_of(int64_t id, const text::Tokenizer& tokenizer) {
  return sluice::quoted(tokenizer.id_to_token(id).value_or("")) + " (" + std::to_string(id) + ")";
}

std::string names_of(const std::vector<int64_t>& ids, const text::Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (const int64_t id : ids) names.push_back(name_of(id, tokenizer));
  return names.empty() ? "no token" : join(names, " and ");
}

std::optional<Problem> other_turn_end(const std::string& model, const fs::path& folder) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  const std::optional<int64_t> end = turn_end(folder, tokenizer);
  std::vector<int64_t> ends = nodes::sequence_ends(models::read_config(folder), tokenizer, folder);
  if (!end || std::ranges::find(ends, *end) != ends.end()) return std::nullopt;
  Problem problem{
      .kind = "data-doubtful",
      .message = "the chat template of model '" + model + "' ends a turn with " + name_of(*end, tokenizer) +
                 ", but a sample ends with " + names_of(ends, tokenizer),
      .notes = {"a response goes on after the end of its turn, up to max_new_tokens; stop does not see special tokens"},
      .severity = Severity::kWarning};
  ends.push_back(*end);
  std::vector<std::string> ids;
  for (const int64_t id : ends) ids.push_back(std::to_string(id));
  problem.help = "\"eos_token_id\": [" + join(ids, ", ") + "] in generation_config.json of " + folder.string() +
                 "; a base model, which never learned to end turns, takes chat = false";
  return problem;
}

}  // namespace

Problems check_turn_ends(const engine::Plan& plan, const engine::PipelineSpec& spec) {
  Problems problems;
  for (const engine::PlanNode& node : plan.nodes) {
    const engine::ModelNeed* need = sampled_for_chats(plan, node);
    if (need == nullptr) continue;
    const engine::PlanModel* const model = plan.find_model(need->model);
    if (model == nullptr || !text::ChatTemplate::is_in(model->facts.folder)) continue;
    try {
      std::optional<Problem> problem = other_turn_end(model->name, model->facts.folder);
      if (!problem) continue;
      problem->where = place_in_node(spec, node.name, need->param);
      problems.push_back(std::move(*problem));
    } catch (const UserError&) {
      // Who loads the model says what is wrong with its folder.
    }
  }
  return problems;
}

}  // namespace sluice::cli
