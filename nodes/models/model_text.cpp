#include "nodes/models/model_text.h"

#include "base/error.h"
#include "models/config/config.h"
#include "text/chat/chat_template.h"

namespace sluice::nodes {

ModelText::ModelText(std::string name, std::filesystem::path folder) : name_(std::move(name)), folder_(std::move(folder)) {}

ModelText::~ModelText() = default;

const text::Tokenizer& ModelText::tokenizer() const {
  std::call_once(tokenizer_once_, [this] { tokenizer_ = std::make_unique<text::Tokenizer>(text::Tokenizer::load(folder_)); });
  return *tokenizer_;
}

const text::ChatTemplate& ModelText::chat_template() const {
  std::call_once(chat_template_once_,
                 [this] { chat_template_ = std::make_unique<text::ChatTemplate>(text::ChatTemplate::load(folder_)); });
  return *chat_template_;
}

int64_t ModelText::end_of_sequence(const std::string& remedy) const {
  if (const auto id = tokenizer().end_of_sequence()) return *id;
  const models::ModelConfig config = models::read_config(folder_);
  if (!config.end_of_sequence.empty()) return config.end_of_sequence.front();
  throw UserError("model '" + name_ + "' names no end of sequence, in tokenizer_config.json or config.json",
                  "name one there (eos_token), or " + remedy);
}

}  // namespace sluice::nodes
