#include "nodes/models/model_text.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "models/config/config.h"
#include "text/chat/chat_template.h"

namespace sluice::nodes {

std::vector<int64_t> sequence_ends(const models::ModelConfig& config, const text::Tokenizer& tokenizer,
                                   const std::filesystem::path& folder) {
  std::vector<int64_t> ids = config.end_of_sequence;
  const std::optional<int64_t> end = tokenizer.end_of_sequence();
  if (!end || std::ranges::find(ids, *end) != ids.end()) return ids;
  if (*end >= config.vocab_size) {
    throw UserError((folder / "tokenizer_config.json").string() + ": eos_token is token " + std::to_string(*end) +
                        ", but the model of this folder has " + std::to_string(config.vocab_size) + " tokens (vocab_size)",
                    "resize_token_embeddings() of transformers adds rows to the model; or name a token that it has");
  }
  ids.push_back(*end);
  return ids;
}

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
  const std::vector<int64_t> ends = sequence_ends(models::read_config(folder_), tokenizer(), folder_);
  if (const auto id = tokenizer().end_of_sequence()) return *id;
  if (!ends.empty()) return ends.front();
  throw UserError("model '" + name_ + "' names no end of sequence, in tokenizer_config.json or config.json",
                  "name one there (eos_token), or " + remedy);
}

}  // namespace sluice::nodes
