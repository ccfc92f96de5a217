#include "nodes/language_model.h"

#include <utility>

#include "base/error.h"
#include "models/folder/folder.h"

namespace sluice::nodes {

LanguageModel::LanguageModel(std::string name, std::filesystem::path folder, models::Transformer transformer,
                             std::optional<models::AdamWOptions> optimizer, int64_t kept_versions, models::Precision precision)
    : name_(std::move(name)),
      folder_(std::move(folder)),
      precision_(precision),
      transformer_(std::move(transformer)),
      published_(transformer_.weights(), kept_versions, precision) {
  if (optimizer) optimizer_.emplace(transformer_.weights().named(), *optimizer);
}

void LanguageModel::save(const std::filesystem::path& folder) const { models::save_folder(transformer_, folder_, folder); }

const text::Tokenizer& LanguageModel::tokenizer() const {
  std::call_once(tokenizer_once_, [this] { tokenizer_ = std::make_unique<text::Tokenizer>(text::Tokenizer::load(folder_)); });
  return *tokenizer_;
}

const text::ChatTemplate& LanguageModel::chat_template() const {
  std::call_once(chat_template_once_,
                 [this] { chat_template_ = std::make_unique<text::ChatTemplate>(text::ChatTemplate::load(folder_)); });
  return *chat_template_;
}

std::shared_ptr<LanguageModel> language_model(const engine::NodeResources& resources, const std::string& name) {
  const auto found = resources.models.find(name);
  SLUICE_CHECK(found != resources.models.end(), "node " + resources.node + " was not given model " + name);
  const auto model = std::dynamic_pointer_cast<LanguageModel>(found->second);
  SLUICE_CHECK(model != nullptr, "model " + name + " is of another class");
  return model;
}

}  // namespace sluice::nodes
