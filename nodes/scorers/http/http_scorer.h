#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/failed_samples.h"
#include "nodes/scorers/http/http_client.h"
#include "nodes/scorers/http/http_params.h"
#include "nodes/scorers/scored_samples.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// What a reward server is sent and answers.
enum class HttpFormat {
  kOpenRlhf,  // {"query": [prompt + response, ...], "prompts": [...], "labels": [...]} -> {"rewards": [...]}
  kSlime,     // one sample: {"prompt": ..., "response": ..., "label": ...} -> a number, or an object with "score" or "reward"
};

constexpr auto enum_names(HttpFormat) {
  return std::array{std::pair{HttpFormat::kOpenRlhf, "openrlhf"}, std::pair{HttpFormat::kSlime, "slime"}};
}

/// Scores that a server gives.
///
///   [nodes.score]
///   type = "http_scorer"
///   inputs = ["generate"]
///   urls = ["http://reward-1:5000/get_reward", "http://reward-2:5000/get_reward"]   # requests go to them in turn
///   format = "openrlhf"          # or "slime", see HttpFormat
///   batch_size = 64              # samples a request; default: an equal share of the micro-batch to each url
///   on_error = "fail"            # "skip", "value", see failed_samples.h
///
/// And the parameters of every scorer (scorer.h) and of those that ask servers (http_params.h). Certificates and the proxies of
/// the environment are as for curl; this machine itself is never asked through a proxy.
///
/// Reads response[S], and prompt[G] and label[G] where they are written; writes score[S]  (S: samples, G: groups). extra_logs of
/// a server are recorded as NODE/NAME, their mean. A request that fails for good, and an answer that is not one finite number for
/// each sample, fails the samples of the request; the message names url, status and the beginning of the answer. With on_error =
/// "fail" the first of them ends the rest.
struct HttpScorerParams : ScorerParams, OnErrorParams, HttpParams {
  HttpFormat format = HttpFormat::kOpenRlhf;
  std::optional<int64_t> batch_size;
};

class HttpScorer final : public engine::Node {
 public:
  static void describe(engine::Contract<HttpScorerParams>& contract);

  HttpScorer(const HttpScorerParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  struct Score {
    float value = 0;
    std::string fault = {};  // why there is none; empty: there is
  };

  size_t batch_size(size_t samples) const;
  std::string request(const ScoredSamples& samples, engine::Range range) const;
  bool take(const HttpReply& reply, engine::Range range, ScoredTexts& texts, FailedSamples& failed);
  std::vector<Score> scores_of(const HttpReply& reply, size_t samples);
  static Score score_of_one(const Json& answer, const std::string& answered);
  static std::vector<Score> scores_of_list(const Json& list, const std::string& answered);
  void record(const Json* logs);

  HttpScorerParams params_;
  std::string node_;
  HttpClient client_;
  engine::MetricsRecorder& metrics_;
  engine::OutsideWork* const outside_;
};

}  // namespace sluice::nodes
