#include "nodes/scorers/http/judge.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/text/shown_text.h"
#include "base/text/strings.h"
#include "nodes/columns/column_json.h"
#include "nodes/columns/columns.h"
#include "nodes/prompts/conversation.h"
#include "nodes/scorers/http/answer_json.h"

namespace sluice::nodes {
namespace {

PromptTemplate rubric_of(const JudgeParams& params) {
  return PromptTemplate(params.rubric, "rubric", "response, prompt, question or label");
}

bool names(const PromptTemplate& rubric, const std::string& name) {
  return std::ranges::find(rubric.fields(), name) != rubric.fields().end();
}

// What a rubric that can be read names; one that cannot is reported by check_rubric().
void read_what_is_named(const JudgeParams& params, engine::NodeNeeds& needs) {
  try {
    const PromptTemplate rubric = rubric_of(params);
    if (names(rubric, "prompt") || names(rubric, "question")) needs.reads.push_back(columns::kPrompt.spec());
    if (names(rubric, "label")) needs.reads.push_back(columns::kLabel.spec());
    if (names(rubric, "question")) needs.choices.push_back({{columns::kMessages.spec()}, false});
  } catch (const UserError&) {
  }
}

void check_rubric(const JudgeParams& params, engine::Findings& findings) {
  try {
    const PromptTemplate rubric = rubric_of(params);
    for (const std::string& name : rubric.fields()) {
      if (name == "response" || name == "prompt" || name == "question" || name == "label") continue;
      findings.error("rubric", "rubric names {" + name + "}, which is nothing that a judge is told",
                     "{response}, {prompt}, {question} or {label}; {{ and }} are braces");
    }
    if (!names(rubric, "response")) {
      findings.error("rubric", "rubric has no place for {response}, so every response would be judged alike",
                     "Answer: {response}");
    }
  } catch (const UserError& error) {
    findings.error("rubric", error);
  }
}

// The members that `request` spells; nothing: it is no JSON object.
std::optional<Json> members_of(const std::string& request) {
  if (request.empty()) return Json::object();
  Json members = json_or_discarded(request);
  return members.is_object() ? std::optional(std::move(members)) : std::nullopt;
}

Json common_request(const JudgeParams& params) {
  Json request{{"model", params.served_model}, {"temperature", params.temperature}, {"max_tokens", params.max_new_tokens}};
  request.update(members_of(params.request).value_or(Json::object()));
  return request;
}

// What the user said last in a conversation; where it is none, the prompt.
std::string question_in(const std::string& messages, const std::string& prompt) {
  Json conversation = json_or_discarded(messages);
  const Json* const asked = last_user_message(conversation);
  return asked == nullptr ? prompt : content_of(*asked);
}

const Json* member(const Json* of, const char* name) {
  return of != nullptr && of->is_object() && of->contains(name) ? &(*of)[name] : nullptr;
}

// The first choice of a chat completion; null: it is none.
const Json* choice_of(const Json& answer) {
  const Json* choices = member(&answer, "choices");
  return choices == nullptr || !choices->is_array() || choices->empty() ? nullptr : &choices->front();
}

// Its text; null: it has none.
const Json* text_of(const Json* choice) {
  const Json* text = member(member(choice, "message"), "content");
  return text != nullptr && text->is_string() ? text : nullptr;
}

bool was_cut(const Json* choice) {
  const Json* reason = member(choice, "finish_reason");
  return reason != nullptr && reason->is_string() && reason->get_ref<const std::string&>() == "length";
}

}  // namespace

void Judge::describe(engine::Contract<JudgeParams>& c) {
  using P = JudgeParams;
  c.type("judge", "scores of a language model that is asked over HTTP, by a rubric");
  describe_http(c);
  c.param("served_model", &P::served_model).required().doc("the judge, as the server calls it");
  c.param("rubric", &P::rubric).required().doc("what the judge is asked, with {response}, {prompt}, {question} and {label}");
  c.param("system", &P::system).doc("a system message before the rubric; empty: none");
  describe_verdict(c);
  c.param("asks", &P::asks).between(1, 100).doc("how often in all a judge is asked whose reply has no verdict");
  c.param("temperature", &P::temperature).at_least(0).doc("of the judge");
  c.param("max_new_tokens", &P::max_new_tokens).at_least(1).unit("tokens").doc("of a reply");
  c.param("request", &P::request).doc("a JSON object whose members are sent too, in place of others of the same name");
  describe_on_error(c);
  describe_scorer(c);
  c.needs(read_what_is_named);
  c.metric("reward/NODE/asked_again", engine::Metric::kSum, "replies without a verdict after which a judge was asked again");
  c.check(check_rubric);
  c.check([](const P& params, engine::Findings& findings) {
    if (!members_of(params.request)) findings.error("request", "request must be a JSON object", "request = '{\"top_p\": 0.9}'");
  });
}

Judge::Judge(const JudgeParams& params, engine::NodeResources& resources)
    : params_(params),
      node_(resources.node),
      rubric_(rubric_of(params)),
      reader_(params, "node '" + resources.node + "', extract"),
      request_(common_request(params)),
      client_(http_options(params, resources.node)),
      metrics_(*resources.metrics),
      outside_(resources.outside) {}

void Judge::process(engine::MicroBatch& batch) {
  ScoredTexts texts(params_, batch);
  const ScoredSamples samples(texts, batch);
  FailedSamples failed;
  HttpRetries retries(node_, batch.iteration());
  const Judged judged{samples, {outside_, batch.iteration()}, texts, failed, retries};
  std::vector<size_t> asked(texts.size());
  std::iota(asked.begin(), asked.end(), size_t{0});
  double asked_again = 0;
  for (int64_t time = 1; !asked.empty(); ++time) {
    asked = ask(asked, time, judged);
    asked_again += static_cast<double>(asked.size());
  }
  metrics_.sum("reward/" + node_ + "/asked_again", asked_again);
  retries.record(metrics_);
  failed.settle(params_, node_, batch, texts, metrics_);
  texts.record(metrics_);
}

// Asks for the time-th time. Gives those that are to be asked again.
std::vector<size_t> Judge::ask(const std::vector<size_t>& asked, int64_t time, const Judged& judged) {
  std::vector<std::string> requests;
  for (const size_t sample : asked) requests.push_back(request(judged.samples, sample));
  std::vector<size_t> without_verdict;
  bool has_ended = false;
  const auto take = [&](size_t i, const HttpReply& reply) {
    const Verdict verdict = verdict_of(reply);
    if (verdict.fault.empty()) {
      judged.texts.score(asked[i]) = static_cast<float>(verdict.score);
    } else if (reply.failure.empty() && time < params_.asks) {
      without_verdict.push_back(asked[i]);
    } else {
      judged.failed.add(asked[i], verdict.fault + (time > 1 ? " (asked " + std::to_string(time) + " times)" : ""));
      has_ended = params_.on_error == OnError::kFail;
    }
    return !has_ended;
  };
  client_.post(
      requests, take, [&](const HttpRetry& retry) { judged.retries.note(retry); }, judged.wait);
  std::ranges::sort(without_verdict);  // replies come in any order
  return has_ended ? std::vector<size_t>() : without_verdict;
}

std::string Judge::request(const ScoredSamples& samples, size_t sample) const {
  std::vector<std::string> values;
  for (const std::string& name : rubric_.fields()) {
    if (name == "response") values.push_back(samples.responses[sample]);
    if (name == "prompt") values.push_back(samples.prompts[sample]);
    if (name == "label") values.push_back(samples.labels[sample]);
    if (name == "question") values.push_back(question_in(samples.messages[sample], samples.prompts[sample]));
  }
  Json messages = Json::array();
  if (!params_.system.empty()) messages.push_back({{"role", "system"}, {"content", params_.system}});
  messages.push_back({{"role", "user"}, {"content", rubric_.fill(values)}});
  Json body{{"messages", std::move(messages)}};
  body.update(request_);
  return dump_json(body);
}

Verdict Judge::verdict_of(const HttpReply& reply) const {
  if (!reply.failure.empty()) return {.fault = reply.failure};
  constexpr size_t kShown = 200;
  const std::string answered = reply.url + " answered " + shown_text(reply.body, kShown);
  const AnswerJson answer = json_of_answer(reply.body);
  if (!answer.fault.empty()) return {.fault = answered + ", which " + answer.fault};
  const Json* choice = choice_of(answer.value);
  const Json* text = text_of(choice);
  if (text == nullptr) return {.fault = answered + ", which is no chat completion with a text"};
  const auto& said = text->get_ref<const std::string&>();
  try {
    Verdict verdict = was_cut(choice) ? reader_.read_cut(said) : reader_.read(said);
    if (!verdict.fault.empty())
      verdict.fault = reply.url + ": the judge's reply " + shown_text(said, kShown) + " " + verdict.fault;
    return verdict;
  } catch (const text::RegexGaveUp& error) {
    return {.fault = error.message()};
  }
}

}  // namespace sluice::nodes
