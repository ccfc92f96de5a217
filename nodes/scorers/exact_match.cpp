#include "nodes/scorers/exact_match.h"

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {
namespace {

const std::string& label_pattern(const ExactMatchParams& params) {
  return params.label_extract ? *params.label_extract : params.extract;
}

}  // namespace

ReferenceAnswers::ReferenceAnswers(const ExactMatchParams& params, const std::string& where)
    : pattern_(label_pattern(params)), form_(params.normalize), answer_(pattern_, where) {}

std::string ReferenceAnswers::operator()(const std::string& label) const {
  check_label(label);
  const auto answer = [&] {
    try {
      return answer_.find(label);
    } catch (const text::RegexGaveUp& error) {
      throw UserError("is too much for label_extract: " + error.message());
    }
  }();
  if (!answer) throw UserError("has no match of " + sluice::quoted(pattern_), "label_extract = \"\" takes the label as it is");
  const auto reference = canonical_answer(*answer, form_);
  if (!reference)
    throw UserError("is not a number", "normalize = \"text\" compares texts; extract or label_extract cut the number out");
  return *reference;
}

void ExactMatch::describe(engine::Contract<ExactMatchParams>& c) {
  using P = ExactMatchParams;
  c.type("exact_match", "1 where the response is the reference answer, else 0");
  c.param("extract", &P::extract)
      .doc("regular expression whose last match (its group 1, if it has one) is the answer; empty: the whole text");
  c.param("label_extract", &P::label_extract).doc("the same for the label; unset: as extract");
  c.param("normalize", &P::normalize)
      .doc("what counts as equal: none: the same text, text: case and blanks aside, number: the same number");
  describe_on_error(c);
  describe_scorer(c);
  describe_labels(c, [](const P& params) { return ReferenceAnswers(params, "label_extract"); });
  c.check([](const P& params, engine::Findings& findings) {
    check_pattern("extract", params.extract, findings);
    if (params.label_extract) check_pattern("label_extract", *params.label_extract, findings);
  });
}

ExactMatch::ExactMatch(const ExactMatchParams& params, engine::NodeResources& resources)
    : params_(params),
      node_(resources.node),
      in_response_(params.extract, "node '" + resources.node + "', extract"),
      reference_(params, "node '" + resources.node + "', label_extract"),
      metrics_(*resources.metrics) {}

void ExactMatch::process(engine::MicroBatch& batch) {
  const std::vector<std::string> references = read_labels(batch, reference_);  // [G]
  ScoredTexts texts(params_, batch);
  FailedSamples failed;
  score_each(texts, failed, [&](size_t i) {
    const auto answer = in_response_.find(texts.text(i));
    const bool right = answer && canonical_answer(*answer, params_.normalize) == references[texts.group_of(i)];
    return right ? 1.0f : 0.0f;
  });
  failed.settle(params_, node_, batch, texts, metrics_);
  texts.record(metrics_);
}

}  // namespace sluice::nodes
