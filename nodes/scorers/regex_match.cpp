#include "nodes/scorers/regex_match.h"

#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

std::string complete(const RegexMatchParams& params) {
  std::string pattern = (params.dot_matches_newline ? "(?m:" : "(?:") + params.pattern + ")";
  return params.match == MatchExtent::kWhole ? R"(\A)" + pattern + R"(\z)" : pattern;
}

}  // namespace

void RegexMatch::describe(engine::Contract<RegexMatchParams>& c) {
  using P = RegexMatchParams;
  c.type("regex_match", "1 where the response matches a regular expression, else 0");
  c.param("pattern", &P::pattern).required().doc("the regular expression (Oniguruma)");
  c.param("match", &P::match).doc("search: any part of the response may match, whole: all of it must");
  c.param("dot_matches_newline", &P::dot_matches_newline).doc("true: . is any character, the newline included");
  describe_on_error(c);
  describe_scorer(c);
  c.check([](const P& params, engine::Findings& findings) {
    check_pattern("pattern", params.pattern, findings);
    if (params.dot_matches_newline && params.pattern.find('.') == std::string::npos) {
      findings.without_effect("dot_matches_newline", "dot_matches_newline has no effect: the pattern has no dot",
                              "remove dot_matches_newline");
    }
  });
}

RegexMatch::RegexMatch(const RegexMatchParams& params, engine::NodeResources& resources)
    : params_(params),
      node_(resources.node),
      regex_(complete(params), "node '" + resources.node + "', pattern"),
      metrics_(*resources.metrics) {}

void RegexMatch::process(engine::MicroBatch& batch) {
  ScoredTexts texts(params_, batch);
  FailedSamples failed;
  score_each(texts, failed, [&](size_t i) {
    const std::string& text = texts.text(i);
    return is_utf8(text) && !regex_.find_all(text).empty() ? 1.0f : 0.0f;
  });
  failed.settle(params_, node_, batch, texts, metrics_);
  texts.record(metrics_);
}

}  // namespace sluice::nodes
