#include "cli/samples/token_colours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace sluice::cli {
namespace {

constexpr size_t kLevels = 5;

// From pale to strong; black text stands out on all of them.
constexpr std::array<int, kLevels> kAbove{194, 157, 120, 84, 48}, kBelow{224, 217, 210, 209, 203}, kMuch{230, 229, 228, 221, 214};

// 0: less than a tenth.
int background_of(double strength, const std::array<int, kLevels>& levels) {
  if (!(strength >= 0.1)) return 0;
  return levels[std::min(kLevels - 1, static_cast<size_t>(strength * static_cast<double>(kLevels)))];
}

double largest(const NumberedTokens& tokens) {
  double most = 0;
  for (const auto& [text, number] : tokens) most = std::max(most, std::abs(number));
  return most;
}

// Of one field, or what the first of two is above the second.
std::optional<NumberedTokens> numbers_of(const Json& sample, const std::vector<std::string>& fields,
                                         const text::Tokenizer& tokenizer) {
  auto tokens = numbered_tokens(sample, fields[0], tokenizer);
  if (!tokens || fields.size() == 1) return tokens;
  const auto others = numbered_tokens(sample, fields[1], tokenizer);
  if (!others || others->size() != tokens->size()) return std::nullopt;
  for (size_t i = 0; i < tokens->size(); ++i) (*tokens)[i].second -= (*others)[i].second;
  return tokens;
}

int background_of(const TokenMeasure& measure, double number, double most) {
  if (std::strcmp(measure.word, "probability") == 0) return background_of(1 - std::exp(number), kMuch);
  if (std::strcmp(measure.word, "kl") == 0) return background_of(std::abs(number) / most, kMuch);
  return background_of(std::abs(number) / most, number > 0 ? kAbove : kBelow);
}

}  // namespace

const std::vector<TokenMeasure>& token_measures() {
  static const std::vector<TokenMeasure> kMeasures{
      {"advantage", {{"advantages"}}, "advantage, green above 0, red below"},
      {"kl",
       {{"kl"}, {"rollout_logprobs", "reference_logprobs"}, {"logprobs", "reference_logprobs"}},
       "KL, the stronger, the more"},
      {"probability", {{"rollout_logprobs"}, {"logprobs"}}, "probability, the stronger, the less likely"}};
  return kMeasures;
}

std::optional<NumberedTokens> measured_tokens(const Json& sample, const TokenMeasure& measure, const text::Tokenizer& tokenizer) {
  for (const std::vector<std::string>& fields : measure.fields)
    if (auto tokens = numbers_of(sample, fields, tokenizer)) return tokens;
  return std::nullopt;
}

std::optional<std::vector<ColouredText>> coloured_tokens(const Json& sample, const TokenMeasure& measure,
                                                         const text::Tokenizer& tokenizer) {
  const auto tokens = measured_tokens(sample, measure, tokenizer);
  if (!tokens) return std::nullopt;
  const double most = largest(*tokens);
  std::vector<ColouredText> coloured;
  for (const auto& [text, number] : *tokens) coloured.push_back({text, background_of(measure, number, most)});
  return coloured;
}

}  // namespace sluice::cli
