#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer/stream_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::text {

/// The text of a response while it is being sampled, without special tokens: Tokenizer::decode of all ids so far, kept up to date
/// token by token, but for characters at its end of which only a part is there. Borrows the tokenizer. One thread.
class ResponseText {
 public:
  explicit ResponseText(const Tokenizer& tokenizer) : tokenizer_(&tokenizer), stream_(tokenizer, /*skip_special=*/true) {}

  void push(int64_t id);

  /// From here on another turn is written: has() looks no further back.
  void begin_turn() { turn_begin_ = said_.size() + unsure_.size(); }

  /// Whether the turn holds one of `texts`, told after every push: it looks only where the last one can have completed one,
  /// wherever the tokens are cut. A special token is no text, and found by its name alone.
  bool has(const std::vector<std::string>& texts) const;

  std::string all() const { return said_ + unsure_; }
  std::string turn() const;

 private:
  std::string if_it_ended_here() const;

  const Tokenizer* tokenizer_;
  StreamDecoder stream_;
  std::string special_;           // name of the last token; empty: it is not special
  std::string said_;              // sure, whatever follows
  std::string unsure_;            // what the tokens after it would be if the text ended here
  std::vector<int64_t> waiting_;  // those tokens, after the last that said something
  bool has_said_ = false;         // waiting_ begins with that last one
  size_t sure_before_ = 0;        // size of said_ before the last push
  size_t turn_begin_ = 0;
};

}  // namespace sluice::text
