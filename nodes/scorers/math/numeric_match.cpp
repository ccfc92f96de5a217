#include "nodes/scorers/math/numeric_match.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/scorers/math/math_text.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr double kLargestTolerance = 1e15;

std::optional<NumberInText> read_whole(std::optional<std::string_view> text) {
  return text ? whole_number(plain_math(*text)) : std::nullopt;
}

std::optional<NumberInText> read_last(std::string_view text) { return last_number(plain_math(text)); }

std::optional<NumberInText> find_number(std::string_view text, NumberPlace place) {
  switch (place) {
    case NumberPlace::kBoxed:
      return read_whole(last_boxed(text));
    case NumberPlace::kHash:
      return read_whole(after_hashes(text));
    case NumberPlace::kLastNumber:
      return read_last(text);
    case NumberPlace::kAuto:
      if (text.find("\\boxed") != std::string_view::npos) return read_whole(last_boxed(text));
      if (auto number = read_whole(after_hashes(text))) return number;
      return read_last(text);
  }
  throw InternalError("unknown place of a number");
}

Rational value_of(const NumberInText& number, PercentMeaning percent) {
  const bool scaled = number.percent && percent == PercentMeaning::kScale;
  return scaled ? number.value / Rational{.above = Natural(100)} : number.value;
}

// The number that a label marks, though it is not all of the label.
std::optional<NumberInText> marked_number(std::string_view label, NumberPlace answer) {
  const auto line = after_hashes(label);
  if (last_boxed(label) || !line || std::ranges::none_of(*line, is_digit)) return find_number(label, answer);
  if (auto number = read_whole(line)) return number;
  return single_number(plain_math(*line));
}

// What labels hold, as a reader of describe_labels().
class ReferenceNumbers {
 public:
  explicit ReferenceNumbers(const NumericMatchParams& params) : place_(params.answer), percent_(params.percent) {}

  Rational operator()(const std::string& label) const {
    check_label(label);
    const auto number = number_of_label(label, place_);
    if (!number) {
      const bool has_digits = std::ranges::any_of(label, is_digit);
      throw UserError(
          has_digits ? "holds more than one number, or one that is a part of something else" : "holds no number",
          "a label is one number, with a unit or without, or marks it with #### or \\boxed{}; exact_match compares texts");
    }
    return value_of(*number, percent_);
  }

 private:
  NumberPlace place_;
  PercentMeaning percent_;
};

// The decimal that the user wrote: 0.01 is a hundredth, not the double next to it.
Rational as_written(double value) {
  const auto number = whole_number(real_text(value));
  return number ? number->value : Rational{};  // below 1e-100
}

}  // namespace

std::optional<NumberInText> number_of_label(std::string_view label, NumberPlace answer) {
  if (auto number = read_whole(label)) return number;
  return last_boxed(label) || after_hashes(label) ? marked_number(label, answer) : single_number(plain_math(label));
}

void NumericMatch::describe(engine::Contract<NumericMatchParams>& c) {
  using P = NumericMatchParams;
  c.type("numeric_match", "1 where the number of the response is that of the label, else 0");
  c.param("answer", &P::answer)
      .doc(
          "where the number stands: boxed: in the last \\boxed{...}, hash: after the last ####, last_number: anywhere, auto: the "
          "first of these that is there");
  c.param("tolerance", &P::tolerance).between(0, kLargestTolerance).doc("numbers this far apart are equal");
  c.param("relative_tolerance", &P::relative_tolerance)
      .between(0, 1)
      .doc("likewise, as a share of the label's number; either is enough");
  c.param("percent", &P::percent).doc("what 50% is: ignore: 50, scale: 0.5");
  describe_scorer(c);
  describe_labels(c, [](const P& params) { return ReferenceNumbers(params); });
  describe_score_metric(c, "answered", engine::Metric::kMean, "share of the responses in which a number was found");
}

NumericMatch::NumericMatch(const NumericMatchParams& params, engine::NodeResources& resources)
    : params_(params),
      tolerance_(as_written(params.tolerance)),
      relative_tolerance_(as_written(params.relative_tolerance)),
      metrics_(*resources.metrics) {}

void NumericMatch::process(engine::MicroBatch& batch) {
  const std::vector<Rational> references = read_labels(batch, ReferenceNumbers(params_));  // [G]
  ScoredTexts texts(params_, batch);

  size_t answered = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto answer = find_number(texts.text(i), params_.answer);
    answered += answer.has_value();
    texts.score(i) = answer && equal(value_of(*answer, params_.percent), references[texts.group_of(i)]) ? 1.0f : 0.0f;
  }
  texts.record(metrics_);
  texts.record_answered(metrics_, answered);
}

bool NumericMatch::equal(const Rational& answer, const Rational& reference) const {
  const Rational distance = (answer - reference).absolute();
  return distance <= tolerance_ || distance <= relative_tolerance_ * reference.absolute();
}

}  // namespace sluice::nodes
