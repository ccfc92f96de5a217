#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "cli/model/commands.h"
#include "models/sample/generation.h"
#include "models/sample/load_packed.h"
#include "text/tokenizer/stream_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {

/// A model folder as `model sample` and `model chat` draw from it.
struct SampledModel {
  text::Tokenizer tokenizer;
  models::PackedModel model;
  models::GenerationOptions options;
};

/// Throws UserError naming file and key for what is no model with a tokenizer.
SampledModel load_to_sample(const std::filesystem::path& folder, const SamplingArguments& arguments);

/// What a sample says: all but the token that ended it.
std::span<const int64_t> without_end(const models::SampleResult& result);

/// "end_of_sequence", "length" or "stopped".
const char* finish_name(models::FinishReason finish);

/// Prints the text of one sample as it grows, in whole characters, without special tokens. Borrows the tokenizer.
class GrowingText {
 public:
  explicit GrowingText(const text::Tokenizer& tokenizer) : decoder_(tokenizer, /*skip_special=*/true) {}

  /// What the sample has so far: what it had at the last call is its beginning.
  void grown(std::span<const int64_t> tokens);

  /// Prints what waits for a character that will not come. The last call.
  void finish();

 private:
  text::StreamDecoder decoder_;
  size_t printed_ = 0;  // tokens
};

}  // namespace sluice::cli
