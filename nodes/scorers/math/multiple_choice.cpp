#include "nodes/scorers/math/multiple_choice.h"

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/scorers/math/math_text.h"

namespace sluice::nodes {
namespace {

constexpr int64_t kMostChoices = 26;

// The letter that stands last, as a capital.
std::optional<char> last_match(std::initializer_list<const text::Regex*> patterns, std::string_view text) {
  std::optional<size_t> last;
  for (const text::Regex* pattern : patterns) {
    const auto matches = pattern->find_all_captures(text);
    if (!matches.empty() && (!last || matches.back().begin > *last)) last = matches.back().begin;
  }
  if (!last) return std::nullopt;
  return capital_of(text[*last]);
}

}  // namespace

LabelLetters::LabelLetters(int64_t choices)
    : choices_(choices),
      alone_(
          choice_regex(R"(\A)" + std::string(kBeforeLetter) + "(" + letter_of_any_case(choices) + ")" + kBehindLetter + R"(\z)")),
      leading_(choice_regex(R"(\A)" + std::string(kBeforeLetter) + "(" + letter_of_any_case(choices) + R"()[*_}]*[).:\]])")) {}

char LabelLetters::operator()(const std::string& label) const {
  check_label(label);
  if (const auto letter = find(label)) return *letter;
  throw UserError(std::string("is no choice from A to ") + static_cast<char>('A' + choices_ - 1),
                  "a label is the letter, or begins with it: \"B\", \"(B)\", \"B. Paris\"; choices says how many there are");
}

std::optional<char> LabelLetters::find(std::string_view text) const {
  return is_utf8(text) ? last_match({&alone_, &leading_}, text) : std::nullopt;
}

std::optional<char> LabelLetters::find_alone(std::string_view text) const { return last_match({&alone_}, text); }

void MultipleChoice::describe(engine::Contract<MultipleChoiceParams>& c) {
  using P = MultipleChoiceParams;
  c.type("multiple_choice", "1 where the response chooses the letter of the label, else 0");
  c.param("choices", &P::choices).between(2, kMostChoices).doc("the letters from A on that can be chosen");
  describe_on_error(c);
  describe_scorer(c);
  describe_labels(c, [](const P& params) { return LabelLetters(params.choices); });
  describe_score_metric(c, "answered", engine::Metric::kMean, "share of the responses that choose a letter");
}

MultipleChoice::MultipleChoice(const MultipleChoiceParams& params, engine::NodeResources& resources)
    : params_(params),
      node_(resources.node),
      of_label_(params.choices),
      in_sentences_(params.choices),
      metrics_(*resources.metrics) {}

void MultipleChoice::process(engine::MicroBatch& batch) {
  const std::vector<char> references = read_labels(batch, of_label_);  // [G]
  ScoredTexts texts(params_, batch);

  size_t answered = 0;
  FailedSamples failed;
  score_each(texts, failed, [&](size_t i) {
    const auto letter = choice_of_response(texts.text(i));
    answered += letter.has_value();
    return letter == references[texts.group_of(i)] ? 1.0f : 0.0f;
  });
  failed.settle(params_, node_, batch, texts, metrics_);
  texts.record(metrics_);
  texts.record_answered(metrics_, answered);
}

std::optional<char> MultipleChoice::choice_of_response(std::string_view response) const {
  if (!is_utf8(response)) return std::nullopt;
  if (const auto letter = of_label_.find_alone(response)) return letter;
  if (response.find("\\boxed") != std::string_view::npos) {
    const auto box = last_boxed(response);
    return box ? of_label_.find(*box) : std::nullopt;
  }
  return in_sentences_.find(response);
}

}  // namespace sluice::nodes
