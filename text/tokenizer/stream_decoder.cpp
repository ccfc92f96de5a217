#include "text/tokenizer/stream_decoder.h"

namespace sluice::text {

std::string StreamDecoder::push(int64_t id) {
  std::string text;
  if (const auto* token = tokenizer_->find_decoded(id, skip_special_)) run_->token(token->text, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  run_->finish(text);
  return text;
}

}  // namespace sluice::text
