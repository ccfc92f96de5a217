#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace sluice::models {
struct ModelConfig;
}
namespace sluice::text {
class ChatTemplate;
}

namespace sluice::nodes {

/// The ids that end a sample of the model in `folder`: those of its config first, then that of its tokenizer. Throws UserError
/// where the model has no row for the latter: it could neither sample it nor be taught to.
std::vector<int64_t> sequence_ends(const models::ModelConfig& config, const text::Tokenizer& tokenizer,
                                   const std::filesystem::path& folder);

/// What a model folder says about text: tokenizer, chat template, end of sequence. Reads each file at its first use, and no
/// weights. Const use from many threads.
class ModelText {
 public:
  /// `name`: of the model, for messages.
  ModelText(std::string name, std::filesystem::path folder);
  ~ModelText();

  const std::string& name() const { return name_; }
  const std::filesystem::path& folder() const { return folder_; }

  /// Throws UserError naming file and key.
  const text::Tokenizer& tokenizer() const;

  /// Likewise, also when the folder has none.
  const text::ChatTemplate& chat_template() const;

  /// The id that ends a text. Throws UserError where the folder names none, or one that the model does not have; `remedy` is
  /// another way out.
  int64_t end_of_sequence(const std::string& remedy) const;

 private:
  const std::string name_;
  const std::filesystem::path folder_;
  mutable std::once_flag tokenizer_once_;
  mutable std::unique_ptr<const text::Tokenizer> tokenizer_;
  mutable std::once_flag chat_template_once_;
  mutable std::unique_ptr<const text::ChatTemplate> chat_template_;
};

}  // namespace sluice::nodes
