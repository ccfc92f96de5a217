#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/json/json.h"
#include "base/problem.h"
#include "cli/model/commands.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {

/// What `model sample` continues, one prompt at a time; nothing is kept of those that were asked for. Not thread-safe.
class SamplePrompts {
 public:
  virtual ~SamplePrompts() = default;

  struct Prompt {
    Json written;              // as it was given: a text, or a list of messages
    std::vector<int64_t> ids;  // as the model gets it
  };

  virtual size_t count() const = 0;

  /// Throws UserError for what the chat template refuses.
  virtual Prompt at(size_t row) const = 0;

  /// Where it stands, for messages; of one that stands in no file not known.
  virtual SourceSpan where(size_t row) const = 0;
};

/// Those of the arguments: one, or the rows of a file, which are proved to have a prompt but stay in their file. Borrows the
/// tokenizer. Throws UserError with all that is wrong with the file.
std::unique_ptr<SamplePrompts> sample_prompts(const SampleArguments& arguments, const text::Tokenizer& tokenizer);

}  // namespace sluice::cli
