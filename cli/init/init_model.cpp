#include "cli/init/init_model.h"

#include <algorithm>
#include <set>

#include "base/text/strings.h"
#include "cli/model/model_facts.h"
#include "data/messages.h"
#include "data/row_parser.h"
#include "models/config/config.h"
#include "models/folder/hub_cache.h"
#include "models/folder/safetensors.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {
namespace {

constexpr size_t kMeasured = 200;   // rows
constexpr int64_t kTurnTokens = 8;  // that a template puts around a turn, about

int64_t tokens_of(const InitModel& model, const std::string& text) {
  return static_cast<int64_t>(model.text->tokenizer().encode(text).size());
}

// A text, or a conversation as the model's template writes it.
int64_t length_of(const InitModel& model, const Json& row, const std::string& name) {
  const Json* value = data::find_field(row, name);
  if (value == nullptr || !value->is_array()) return tokens_of(model, text_of_field(row, name));
  return tokens_of(model, model.text->chat_template().render(data::with_roles(*value), {.add_generation_prompt = true}));
}

// A prompt as the run will have it.
int64_t prompt_length_of(const InitModel& model, const Json& row, const std::string& name, const PromptForm& form) {
  const Json* value = data::find_field(row, name);
  if (!form.chats || (value != nullptr && value->is_array())) return length_of(model, row, name);
  const Json chat = {{{"role", "user"}, {"content", text_of_field(row, name) + form.suffix}}};
  return tokens_of(model, model.text->chat_template().render(chat, {.add_generation_prompt = true}));
}

}  // namespace

InitModel look_at_model(const std::string& written) {
  InitModel model{.folder = models::model_folder(written)};
  const models::ModelConfig config = models::read_config(model.folder);
  model.parameters = parameters_of(config, models::Head::kLanguageModel);
  model.max_positions = config.max_positions;
  model.has_template = text::ChatTemplate::is_in(model.folder);
  model.text = std::make_shared<nodes::ModelText>("model", model.folder);
  if (!models::TensorFolder::is_in(model.folder)) return model;
  const models::TensorFolder tensors(model.folder);
  std::set<std::string> dtypes;
  for (const std::string& name : tensors.names()) dtypes.insert(tensors.entry(name).dtype);
  model.stored = join({dtypes.begin(), dtypes.end()}, ", ");
  model.is_half = !dtypes.contains("F32");
  return model;
}

InitLengths lengths_of(const InitModel& model, const InitData& data, const InitFields& fields, const PromptForm& form) {
  const int64_t turn = model.has_template ? kTurnTokens : 0;
  InitLengths longest;
  for (size_t i = 0; i < std::min(data.rows.size(), kMeasured); ++i) {
    const Json& row = data.rows[i];
    int64_t prompt = fields.messages.empty() ? turn : length_of(model, row, fields.messages);
    for (const std::string& name : fields.prompt) prompt += prompt_length_of(model, row, name, form) + turn;
    int64_t answer = 0;
    for (const std::string& name : {fields.answer, fields.chosen, fields.rejected}) {
      if (!name.empty()) answer = std::max(answer, length_of(model, row, name) + 1);
    }
    longest.prompt = std::max(longest.prompt, prompt);
    longest.answer = std::max(longest.answer, answer);
    const int64_t whole = prompt + answer + turn;
    longest.whole = std::max(longest.whole, whole);
    longest.shortest_whole = i == 0 ? whole : std::min(longest.shortest_whole, whole);
  }
  return longest;
}

}  // namespace sluice::cli
