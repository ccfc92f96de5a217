#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace sluice::text {

/// The text of ids that come one by one, as a model samples them.
///
///   StreamDecoder stream(tokenizer);
///   for (...) show(stream.push(id));
///   show(stream.finish());
///
/// All that is returned, one after the other, is Tokenizer::decode of all ids. What is returned is whole characters, as soon as
/// nothing that follows can change them: half a character waits, and so does a run of SentencePiece's byte tokens, which one
/// wrong byte would spoil as a whole. Borrows the tokenizer. One thread at a time.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special), run_(std::make_unique<Decoder::Run>(tokenizer.decoder_)) {}

  /// The text that `id` completes; often of one token, sometimes of none or of several.
  std::string push(int64_t id);

  /// The rest, with U+FFFD for what did not become a character. After this the stream has ended.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::unique_ptr<Decoder::Run> run_;
};

}  // namespace sluice::text
