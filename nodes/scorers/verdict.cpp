#include "nodes/scorers/verdict.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/json.h"
#include "base/shown_text.h"
#include "base/strings.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {
namespace {

// Choices are the same whatever their case and the punctuation around them.
std::string plain(std::string_view text) { return canonical_answer(text, AnswerForm::kText).value_or(""); }

void check_choices(const VerdictParams& params, engine::Findings& findings) {
  std::set<std::string> seen;
  for (const std::string& choice : params.choices) {
    if (plain(choice).empty())
      findings.error("choices", sluice::quoted(choice) + " is no word", "choices = [\"right\", \"wrong\"]");
    if (!seen.insert(plain(choice)).second) findings.error("choices", sluice::quoted(choice) + " is there twice");
  }
  if (params.choices.size() != params.choice_scores.size()) {
    findings.error(params.choices.empty() ? "choice_scores" : "choices",
                   plural(static_cast<int64_t>(params.choices.size()), "choice") + " and " +
                       plural(static_cast<int64_t>(params.choice_scores.size()), "choice score"),
                   "one score for each choice, in the same order");
  }
}

// The JSON object of a reply, which may stand between words or in a fence; discarded: there is none.
Json object_in(std::string_view reply) {
  const size_t begin = reply.find('{'), end = reply.rfind('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return Json(Json::value_t::discarded);
  return json_or_discarded(reply.substr(begin, end - begin + 1));
}

// The member that `path` names: "a.b" is b of a; null: none.
const Json* member(const Json& object, std::string_view path) {
  const Json* place = &object;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    const auto found = place->is_object() ? place->find(std::string(path.substr(0, dot))) : place->end();
    if (!place->is_object() || found == place->end()) return nullptr;
    place = &*found;
    path.remove_prefix(std::min(path.size(), dot + 1));
  }
  return place;
}

}  // namespace

void check_verdict(const VerdictParams& params, engine::Findings& findings) {
  check_pattern("extract", params.extract, findings);
  check_choices(params, findings);
  if (!params.field.empty() && findings.changed("extract")) {
    findings.without_effect("extract", "extract has no effect beside field", "remove one of them");
  }
  if (params.range.empty()) return;
  if (params.range.size() != 2 || params.range[0] >= params.range[1]) {
    findings.error("range", "range is not the least and the most that a number may be", "range = [1, 10]");
  } else if (!params.choices.empty()) {
    findings.without_effect("range", "range has no effect beside choices", "remove it");
  }
}

VerdictReader::VerdictReader(const VerdictParams& params, const std::string& where)
    : params_(params), finder_(params.extract, where) {}

Verdict VerdictReader::read(std::string_view reply) const {
  if (!params_.field.empty()) return of_field(reply);
  const auto found = finder_.find(reply);
  return found ? of_text(*found) : Verdict{.fault = "has no match of extract"};
}

Verdict VerdictReader::of_field(std::string_view reply) const {
  const Json object = object_in(reply);
  if (!object.is_object()) return {.fault = "has no JSON object"};
  const Json* value = member(object, params_.field);
  if (value == nullptr) return {.fault = "has no " + params_.field + " in its JSON"};
  if (value->is_string()) return of_text(value->get_ref<const std::string&>());
  if (value->is_boolean()) return of_text(value->get<bool>() ? "true" : "false");
  if (!value->is_number()) return {.fault = "has a " + params_.field + " that is no number and no text"};
  return params_.choices.empty() ? of_number(value->get<double>()) : of_text(value->dump());
}

Verdict VerdictReader::of_text(std::string_view text) const {
  if (params_.choices.empty()) {
    text = trim(text);
    if (text.starts_with('+')) text.remove_prefix(1);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    return is_number ? of_number(number) : Verdict{.fault = "says " + shown_text(text) + ", which is no number"};
  }
  const auto found = std::ranges::find(params_.choices, plain(text), plain);
  if (found == params_.choices.end()) return {.fault = "says " + shown_text(text) + ", which is none of the choices"};
  return {.score = params_.choice_scores[static_cast<size_t>(found - params_.choices.begin())]};
}

Verdict VerdictReader::of_number(double number) const {
  if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return {.fault = "says no finite number"};
  if (!params_.range.empty() && (number < params_.range[0] || number > params_.range[1])) {
    return {.fault = "says " + real_text(number) + ", which is not within range"};
  }
  return {.score = number};
}

}  // namespace sluice::nodes
