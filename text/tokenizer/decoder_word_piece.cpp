#include <utility>

#include "text/tokenizer/decoder_steps.h"
#include "text/tokenizer/whole_token_step.h"

namespace sluice::text {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

// In this order.
constexpr Replacement kCleanup[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

class WordPieceStep final : public WholeTokenStep {
 public:
  WordPieceStep(const std::string& prefix, bool cleanup, DecoderStep& next)
      : WholeTokenStep(next), prefix_(prefix), cleanup_(cleanup) {}

 private:
  void take(std::string_view token) override {
    std::string text;
    if (is_first_) {
      text = token;
    } else {
      text = token.starts_with(prefix_) ? std::string(token.substr(prefix_.size())) : " " + std::string(token);
    }
    is_first_ = false;
    for (size_t i = 0; cleanup_ && i < std::size(kCleanup); ++i) {
      text = with_all_replaced(text, kCleanup[i].first, kCleanup[i].second);
    }
    hand_on(text);
  }

  const std::string& prefix_;
  bool cleanup_;
  bool is_first_ = true;
};

}  // namespace

std::unique_ptr<DecoderStep> word_piece_step(const std::string& prefix, bool cleanup, DecoderStep& next) {
  return std::make_unique<WordPieceStep>(prefix, cleanup, next);
}

}  // namespace sluice::text
