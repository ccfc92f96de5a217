#include "nodes/language_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/folder/folder.h"

namespace sluice::nodes {
namespace {

int64_t bytes_of(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace

LanguageModel::LanguageModel(std::string name, std::filesystem::path folder, models::Transformer transformer,
                             std::optional<models::AdamWOptions> optimizer, int64_t kept_versions, models::Precision precision)
    : name_(std::move(name)),
      folder_(std::move(folder)),
      precision_(precision),
      transformer_(std::move(transformer)),
      published_(transformer_.weights(), transformer_.weights().head.defined() ? kept_versions : 0, precision) {
  if (optimizer) optimizer_.emplace(transformer_.weights().trainable(), *optimizer);
  weight_bytes_ = bytes_of(transformer_.weights().named());
  if (!optimizer_) return;
  optimizer_bytes_ = bytes_of(optimizer_->state());
  for (const auto& [name, weight] : transformer_.weights().trainable()) gradient_bytes_ += static_cast<int64_t>(weight.nbytes());
}

engine::ModelBytes LanguageModel::bytes() const {
  return {.weights = weight_bytes_ + published_.packed_bytes(), .gradients = gradient_bytes_, .optimizer = optimizer_bytes_};
}

void LanguageModel::save(const std::filesystem::path& folder) const {
  models::save_folder(transformer_, folder_, folder, {.dtype = {}, .adapter = saved_adapter_});
}

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
