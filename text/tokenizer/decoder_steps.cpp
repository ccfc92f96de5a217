#include "text/tokenizer/decoder_steps.h"

#include <algorithm>

#include "text/tokenizer/growth.h"
#include "text/tokenizer/whole_token_step.h"

namespace sluice::text {
namespace {

class FuseStep final : public DecoderStep {
 public:
  explicit FuseStep(DecoderStep& next) : next_(next) {}

  void fragment(std::string_view text) override { next_.fragment(text); }
  void end_token() override {}
  void finish() override {
    next_.end_token();
    next_.finish();
  }

 private:
  DecoderStep& next_;
};

class ReplaceStep final : public WholeTokenStep {
 public:
  ReplaceStep(const ReplaceSettings& settings, DecoderStep& next) : WholeTokenStep(next), settings_(settings) {}

 private:
  void take(std::string_view token) override {
    std::string replaced;
    size_t done = 0;
    settings_.matcher.for_each(token, [&](Matcher::Match match) {
      replaced += token.substr(done, match.begin - done);
      replaced += settings_.content;
      done = match.end;
      check_growth(settings_.fed, written_ + replaced.size(), settings_.where);
    });
    replaced += token.substr(done);
    written_ += replaced.size();
    hand_on(replaced);
  }

  ReplaceSettings settings_;
  size_t written_ = 0;
};

// Without `stop` only the front of a token is looked at, and the rest is handed on as it comes.
class StripFrontStep final : public DecoderStep {
 public:
  StripFrontStep(const std::string& content, size_t start, DecoderStep& next)
      : content_(content), start_(start), left_(start), next_(next) {}

  void fragment(std::string_view text) override {
    for (; left_ > 0 && !text.empty(); --left_) {
      if (!text.starts_with(content_)) {
        left_ = 0;
        break;
      }
      text.remove_prefix(content_.size());
    }
    next_.fragment(text);
  }
  void end_token() override {
    left_ = start_;
    next_.end_token();
  }
  void finish() override { next_.finish(); }

 private:
  const std::string& content_;
  size_t start_;
  size_t left_;  // to take from the token at hand
  DecoderStep& next_;
};

class StripBothStep final : public WholeTokenStep {
 public:
  StripBothStep(const std::string& content, size_t start, size_t stop, DecoderStep& next)
      : WholeTokenStep(next), content_(content), start_(start), stop_(stop) {}

 private:
  void take(std::string_view token) override {
    for (size_t i = 0; i < start_ && token.starts_with(content_); ++i) token.remove_prefix(content_.size());
    for (size_t i = 0; i < stop_ && token.ends_with(content_); ++i) token.remove_suffix(content_.size());
    hand_on(token);
  }

  const std::string& content_;
  size_t start_;
  size_t stop_;
};

class MetaspaceDecoderStep final : public DecoderStep {
 public:
  MetaspaceDecoderStep(const MetaspaceSettings& settings, DecoderStep& next) : settings_(settings), next_(next) {}

  void fragment(std::string_view text) override {
    const bool drops = is_first_ && settings_.prepend != PrependScheme::kNever;
    next_.fragment(with_all_replaced(text, settings_.replacement, drops ? "" : " "));
  }
  void end_token() override {
    is_first_ = false;
    next_.end_token();
  }
  void finish() override { next_.finish(); }

 private:
  const MetaspaceSettings& settings_;
  bool is_first_ = true;
  DecoderStep& next_;
};

class SuffixStep final : public WholeTokenStep {
 public:
  SuffixStep(const std::string& suffix, DecoderStep& next) : WholeTokenStep(next), suffix_(suffix) {}

  void finish() override {
    if (has_last_) hand_on(with_all_replaced(last_, suffix_, ""));
    next().finish();
  }

 private:
  void take(std::string_view token) override {
    if (has_last_) hand_on(with_all_replaced(last_, suffix_, " "));
    last_ = token;
    has_last_ = true;
  }

  const std::string& suffix_;
  std::string last_;
  bool has_last_ = false;
};

class JoinStep final : public DecoderStep {
 public:
  explicit JoinStep(DecoderStep& next) : next_(next) {}

  void fragment(std::string_view text) override {
    if (owes_blank_) next_.fragment(" ");
    owes_blank_ = false;
    next_.fragment(text);
  }
  void end_token() override {
    owes_blank_ = true;
    next_.end_token();
  }
  void finish() override { next_.finish(); }

 private:
  DecoderStep& next_;
  bool owes_blank_ = false;
};

}  // namespace

std::string with_all_replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(from, begin), text.size());
    replaced += text.substr(begin, end - begin);
    if (end == text.size()) break;
    replaced += to;
    begin = end + from.size();
  }
  return replaced;
}

std::unique_ptr<DecoderStep> fuse_step(DecoderStep& next) { return std::make_unique<FuseStep>(next); }
std::unique_ptr<DecoderStep> replace_step(const ReplaceSettings& settings, DecoderStep& next) {
  return std::make_unique<ReplaceStep>(settings, next);
}
std::unique_ptr<DecoderStep> strip_step(const std::string& content, size_t start, size_t stop, DecoderStep& next) {
  if (stop == 0) return std::make_unique<StripFrontStep>(content, start, next);
  return std::make_unique<StripBothStep>(content, start, stop, next);
}
std::unique_ptr<DecoderStep> metaspace_step(const MetaspaceSettings& settings, DecoderStep& next) {
  return std::make_unique<MetaspaceDecoderStep>(settings, next);
}
std::unique_ptr<DecoderStep> suffix_step(const std::string& suffix, DecoderStep& next) {
  return std::make_unique<SuffixStep>(suffix, next);
}
std::unique_ptr<DecoderStep> join_step(DecoderStep& next) { return std::make_unique<JoinStep>(next); }

}  // namespace sluice::text
