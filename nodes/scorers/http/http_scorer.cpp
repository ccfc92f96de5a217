#include "nodes/scorers/http/http_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json/json.h"
#include "base/text/shown_text.h"
#include "base/text/strings.h"
#include "nodes/columns/column_json.h"
#include "nodes/scorers/http/answer_json.h"
#include "nodes/scorers/metric_name.h"

namespace sluice::nodes {
namespace {

bool is_score(const Json& value) {
  return value.is_number() && std::abs(value.get<double>()) <= static_cast<double>(std::numeric_limits<float>::max());
}

// The first of these members that an answer has; null: none.
const Json* member_of(const Json& answer, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = answer.is_object() ? answer.find(key) : answer.end();
    if (found != answer.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

std::string fault_of_log_name(const std::string& name) {
  return name == "retries" ? "a metric named retries, which counts attempts after the first" : fault_of_metric_name(name);
}

// Why a server's other metrics cannot be recorded; empty: they can, or there are none.
std::string fault_of_logs(const Json* logs) {
  if (logs == nullptr || !logs->is_object()) return {};
  for (const auto& [name, values] : logs->items()) {
    if (std::string fault = fault_of_log_name(name); !fault.empty()) return fault;
  }
  return {};
}

}  // namespace

void HttpScorer::describe(engine::Contract<HttpScorerParams>& c) {
  using P = HttpScorerParams;
  c.type("http_scorer", "scores that a server gives");
  describe_http(c);
  c.param("format", &P::format)
      .doc("openrlhf: batches of query, prompts and labels, slime: prompt, response and label of one sample");
  c.param("batch_size", &P::batch_size)
      .at_least(1)
      .unit("samples")
      .doc("of one request, with format = \"openrlhf\"; unset: an equal share of the micro-batch to each url");
  describe_on_error(c);
  describe_scorer(c);
  c.reads_if_written(columns::kPrompt, columns::kLabel);
  c.metric_family("reward/NODE/", "means of the other metrics that the server answers in extra_logs");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.format == HttpFormat::kSlime && params.batch_size) {
      findings.without_effect("batch_size", "batch_size has no effect with format = \"slime\", whose requests are of one sample");
    }
  });
}

HttpScorer::HttpScorer(const HttpScorerParams& params, engine::NodeResources& resources)
    : params_(params),
      node_(resources.node),
      client_(http_options(params, resources.node)),
      metrics_(*resources.metrics),
      outside_(resources.outside) {}

void HttpScorer::process(engine::MicroBatch& batch) {
  ScoredTexts texts(params_, batch);
  const ScoredSamples samples(texts, batch);
  const size_t most = batch_size(texts.size());
  std::vector<engine::Range> ranges;
  for (size_t begin = 0; begin < texts.size(); begin += most) ranges.push_back({begin, std::min(texts.size(), begin + most)});
  std::vector<std::string> requests;
  for (const engine::Range range : ranges) requests.push_back(request(samples, range));

  FailedSamples failed;
  HttpRetries retries(node_, batch.iteration());
  const auto take = [&](size_t request, const HttpReply& reply) {
    return this->take(reply, ranges[request], texts, failed) || params_.on_error != OnError::kFail;
  };
  client_.post(requests, take, [&](const HttpRetry& retry) { retries.note(retry); }, {outside_, batch.iteration()});
  retries.record(metrics_);
  failed.settle(params_, node_, batch, texts, metrics_);
  texts.record(metrics_);
}

size_t HttpScorer::batch_size(size_t samples) const {
  if (params_.format == HttpFormat::kSlime) return 1;
  if (params_.batch_size) return static_cast<size_t>(*params_.batch_size);
  return std::max<size_t>(1, (samples + params_.urls.size() - 1) / params_.urls.size());
}

std::string HttpScorer::request(const ScoredSamples& samples, engine::Range range) const {
  if (params_.format == HttpFormat::kSlime) {
    const size_t i = range.begin;
    return dump_json(Json{{"prompt", samples.prompts[i]}, {"response", samples.responses[i]}, {"label", samples.labels[i]}});
  }
  Json queries = Json::array();
  for (size_t i = range.begin; i < range.end; ++i) queries.push_back(samples.prompts[i] + samples.responses[i]);
  return dump_json(Json{{"query", std::move(queries)},
                        {"prompts", entries_to_json(samples.prompts, range)},
                        {"labels", entries_to_json(samples.labels, range)}});
}

// False: some of the samples have no score.
bool HttpScorer::take(const HttpReply& reply, engine::Range range, ScoredTexts& texts, FailedSamples& failed) {
  bool all = true;
  const std::vector<Score> scores = scores_of(reply, range.size());
  for (size_t i = 0; i < range.size(); ++i) {
    const bool has_score = scores[i].fault.empty();
    if (has_score)
      texts.score(range.begin + i) = scores[i].value;
    else
      failed.add(range.begin + i, scores[i].fault);
    all &= has_score;
  }
  return all;
}

std::vector<HttpScorer::Score> HttpScorer::scores_of(const HttpReply& reply, size_t samples) {
  const auto none = [&](const std::string& why) { return std::vector<Score>(samples, Score{.fault = why}); };
  if (!reply.failure.empty()) return none(reply.failure);
  constexpr size_t kShown = 200;
  const std::string answered = reply.url + " answered " + shown_text(reply.body, kShown);
  const AnswerJson answer = json_of_answer(reply.body);
  if (!answer.fault.empty()) return none(answered + ", which " + answer.fault);
  if (params_.format == HttpFormat::kSlime) return {score_of_one(answer.value, answered)};

  const Json* scores = member_of(answer.value, {"rewards", "scores"});
  if (scores == nullptr || !scores->is_array()) return none(answered + ", which has no list rewards");
  if (scores->size() != samples) {
    return none(answered + ": " + std::to_string(scores->size()) + " rewards for " +
                plural(static_cast<int64_t>(samples), "sample"));
  }
  const Json* logs = member_of(answer.value, {"extra_logs"});
  if (const std::string fault = fault_of_logs(logs); !fault.empty()) return none(reply.url + " answered " + fault);
  record(logs);
  return scores_of_list(*scores, answered);
}

HttpScorer::Score HttpScorer::score_of_one(const Json& answer, const std::string& answered) {
  const Json* score = answer.is_number() ? &answer : member_of(answer, {"score", "reward"});
  if (score != nullptr && is_score(*score)) return {.value = score->get<float>()};
  return {.fault = answered + ", which is neither a finite number nor an object with one as score or reward"};
}

std::vector<HttpScorer::Score> HttpScorer::scores_of_list(const Json& list, const std::string& answered) {
  std::vector<Score> scores;
  for (const Json& entry : list) {
    const Json& score = entry.is_array() && entry.size() == 1 ? entry[0] : entry;
    scores.push_back(is_score(score)
                         ? Score{.value = score.get<float>()}
                         : Score{.fault = answered + ": reward " + std::to_string(scores.size()) + " is not a finite number"});
  }
  return scores;
}

void HttpScorer::record(const Json* logs) {
  if (logs == nullptr || !logs->is_object()) return;
  for (const auto& [name, values] : logs->items()) {
    for (const Json& value : values.is_array() ? values : Json::array({values})) {
      if (is_score(value)) metrics_.mean("reward/" + node_ + "/" + name, value.get<double>());
    }
  }
}

}  // namespace sluice::nodes
