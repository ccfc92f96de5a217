#include "base/text/strings.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/decoder_steps.h"
#include "text/tokenizer/whole_token_step.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

class ByteLevelStep final : public WholeTokenStep {
 public:
  using WholeTokenStep::WholeTokenStep;

  void finish() override {
    hand_on(replace_invalid_utf8(pending_));
    next().finish();
  }

 private:
  void take(std::string_view token) override {
    pending_ += from_byte_alphabet(token).value_or(std::string(token));
    const size_t decided = pending_.size() - unfinished_utf8(pending_);
    next().fragment(replace_invalid_utf8(std::string_view(pending_).substr(0, decided)));
    pending_.erase(0, decided);
  }

  std::string pending_;  // the beginning of a character
};

class ByteFallbackStep final : public WholeTokenStep {
 public:
  using WholeTokenStep::WholeTokenStep;

  void finish() override {
    end_run();
    next().finish();
  }

 private:
  void take(std::string_view token) override {
    if (const int byte = fallback_byte(token); byte >= 0) {
      run_ += static_cast<char>(byte);
      return;
    }
    end_run();
    hand_on(token);
  }

  // One wrong byte spoils the whole run, so nothing of it is known before its end.
  void end_run() {
    if (run_.empty()) return;
    if (is_utf8(run_)) {
      hand_on(run_);
    } else {
      for (size_t i = 0; i < run_.size(); ++i) hand_on(kReplacement);
    }
    run_.clear();
  }

  std::string run_;
};

}  // namespace

int fallback_byte(std::string_view token) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
  };
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);  // the reference's number may have a sign
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

std::unique_ptr<DecoderStep> byte_level_step(DecoderStep& next) { return std::make_unique<ByteLevelStep>(next); }

std::unique_ptr<DecoderStep> byte_fallback_step(DecoderStep& next) { return std::make_unique<ByteFallbackStep>(next); }

}  // namespace sluice::text
