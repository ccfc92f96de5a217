#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer/tokenizer_decoder.h"

namespace sluice::text {

/// A decoder step that looks at tokens as a whole: waits for their ends. Borrows `next`.
class WholeTokenStep : public DecoderStep {
 public:
  explicit WholeTokenStep(DecoderStep& next) : next_(next) {}

  void fragment(std::string_view text) override { token_ += text; }
  void end_token() override {
    take(token_);
    token_.clear();
  }
  void finish() override { next_.finish(); }

 protected:
  virtual void take(std::string_view token) = 0;
  DecoderStep& next() { return next_; }

  void hand_on(std::string_view token) {
    next_.fragment(token);
    next_.end_token();
  }

 private:
  DecoderStep& next_;
  std::string token_;
};

}  // namespace sluice::text
