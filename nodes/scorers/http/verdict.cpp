#include "nodes/scorers/http/verdict.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/json/json.h"
#include "base/text/shown_text.h"
#include "base/text/strings.h"
#include "nodes/columns/score_columns.h"
#include "nodes/scorers/http/answer_json.h"
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
  for (const double score : params.choice_scores) {
    if (!(std::abs(score) <= kLargestScore))
      findings.error("choice_scores", "choice_scores has " + real_text(score) + ", and a score is within -1e38 and 1e38");
  }
  if (params.choices.size() != params.choice_scores.size()) {
    findings.error(params.choices.empty() ? "choice_scores" : "choices",
                   plural(static_cast<int64_t>(params.choices.size()), "choice") + " and " +
                       plural(static_cast<int64_t>(params.choice_scores.size()), "choice score"),
                   "one score for each choice, in the same order");
  }
}

// As long as the object that begins at the front, by its braces; 0: it has no end. Braces within its texts do not count.
size_t length_of_object(std::string_view text) {
  int depth = 0;
  bool is_in_text = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (is_in_text && text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      is_in_text = !is_in_text;
    else if (!is_in_text && text[at] == '{')
      ++depth;
    else if (!is_in_text && text[at] == '}' && --depth == 0)
      return at + 1;
  }
  return 0;
}

// What is said after the thinking, if anything is. A template may have written the <think> into the prompt.
std::string_view behind_thinking(std::string_view reply) {
  constexpr std::string_view kEnd = "</think>";
  const size_t end = reply.rfind(kEnd);
  if (end == std::string_view::npos) return reply;
  const std::string_view said = reply.substr(end + kEnd.size());
  return trim(said).empty() ? reply : said;
}

// Nothing follows what it thinks.
bool only_thinks(std::string_view reply) { return trim(behind_thinking(reply)).starts_with("<think>"); }

/// The JSON objects of a reply that are in no other, in order; they may stand between words, formulas, or in fences.
struct Objects {
  std::vector<Json> whole;
  bool is_cut = false;  // a brace has no end, so those after it may be within what was cut off
  std::string refused;  // why the last one, which is JSON, is none to read a verdict from; empty: it is one
};

Objects objects_in(std::string_view reply) {
  constexpr size_t kMostLooks = 64;  // at the reply, before braces within braces are given up on
  Objects found;
  size_t looked_at = 0;
  for (size_t begin = reply.find('{'); begin != std::string_view::npos && looked_at <= kMostLooks * reply.size();
       begin = reply.find('{', begin)) {
    const size_t length = length_of_object(reply.substr(begin));
    looked_at += length > 0 ? length : reply.size() - begin;
    found.is_cut |= length == 0;
    AnswerJson object = length > 0 ? json_of_answer(reply.substr(begin, length)) : AnswerJson();
    const bool is_one = object.value.is_object() || object.is_refused;
    if (is_one) found.refused = object.fault;
    if (is_one && !object.is_refused) found.whole.push_back(std::move(object.value));
    begin += is_one ? length : 1;
  }
  return found;
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
  const std::string_view said = behind_thinking(reply);
  if (!params_.field.empty()) return of_field(said);
  const auto found = finder_.find(said);
  return found ? of_text(*found) : Verdict{.fault = "has no match of extract"};
}

Verdict VerdictReader::read_cut(std::string_view reply) const {
  constexpr const char* kCut = "was cut off at max_new_tokens";
  if (only_thinks(reply) || !is_only_one_in(behind_thinking(reply))) return {.fault = kCut};
  Verdict verdict = read(reply);
  if (!verdict.fault.empty()) verdict.fault = kCut;
  return verdict;
}

// Of several the first ones may be the words of the rubric, said again.
bool VerdictReader::is_only_one_in(std::string_view reply) const {
  if (!params_.field.empty()) {
    const Objects objects = objects_in(reply);
    const auto has_it = [&](const Json& object) { return member(object, params_.field) != nullptr; };
    return !objects.is_cut && std::ranges::count_if(objects.whole, has_it) == 1;
  }
  const auto found = finder_.find(reply);
  return found && !params_.extract.empty() && !finder_.find(reply.substr(0, static_cast<size_t>(found->data() - reply.data())));
}

Verdict VerdictReader::of_field(std::string_view reply) const {
  const Objects objects = objects_in(reply);
  if (!objects.refused.empty()) return {.fault = objects.refused};
  if (objects.whole.empty()) return {.fault = "has no JSON object"};
  const Json* value = nullptr;  // of the last one that has it
  for (const Json& object : objects.whole)
    if (const Json* const found = member(object, params_.field)) value = found;
  if (value == nullptr) return {.fault = "has no " + params_.field + " in its JSON"};
  if (value->is_string()) return of_text(value->get_ref<const std::string&>());
  if (value->is_boolean()) return of_text(value->get<bool>() ? "true" : "false");
  if (!value->is_number()) return {.fault = "has a " + params_.field + " that is no number and no text"};
  return params_.choices.empty() ? of_number(value->get<double>()) : of_text(value->dump());
}

Verdict VerdictReader::of_text(std::string_view text) const {
  if (params_.choices.empty()) {
    text = trim(text);
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
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
