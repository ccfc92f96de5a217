#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/prompts/prompt_template.h"
#include "nodes/scorers/failed_samples.h"
#include "nodes/scorers/http/http_client.h"
#include "nodes/scorers/http/http_params.h"
#include "nodes/scorers/http/verdict.h"
#include "nodes/scorers/scored_samples.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// Scores of a language model that judges responses by a rubric, behind a server that speaks OpenAI's chat completions (vLLM,
/// SGLang, llama.cpp, a provider): LLM as a judge (Zheng et al. 2023), a generative reward model.
///
///   [nodes.score]
///   type = "judge"
///   inputs = ["generate"]
///   urls = ["http://judge:8000/v1/chat/completions"]
///   served_model = "Qwen/Qwen2.5-72B-Instruct"    # as the server calls it
///   rubric = """Is the answer right? Question: {question} Reference: {label} Answer: {response} End with [[right]] or [[wrong]]."""
///   system = ""                   # a system message before it
///   choices = ["right", "wrong"]  # what a verdict may be, see verdict.h: also a number, or a field of JSON
///   choice_scores = [1.0, 0.0]
///   asks = 3                      # how often in all a judge is asked whose reply has no verdict
///   temperature = 0.0             # of the judge
///   max_new_tokens = 1024         # likewise
///   request = '{"top_p": 0.9}'    # members of the request, which add to the others or replace them
///   on_error = "fail"             # "skip", "value", see failed_samples.h
///
/// And the parameters of every scorer (scorer.h) and of those that ask servers (http_params.h). A rubric has {response},
/// {prompt}, {label}, and {question}: of a prompt that was written from messages what the user said last, else the prompt; {{ and
/// }} are braces. What a response says is never read as a rubric, but the judge may well believe it.
///
/// Reads response[S], and of prompt[G], label[G] and messages[G] what the rubric names; writes score[S]. A request for each
/// sample. One that fails for good, and a reply without a verdict after `asks` requests, fails the sample; with on_error = "fail"
/// the first of them ends the rest. Nothing is kept from one request to the next, and the token is written nowhere.
struct JudgeParams : ScorerParams, OnErrorParams, HttpParams, VerdictParams {
  std::string served_model;
  std::string rubric;
  std::string system;
  int64_t asks = 3;
  double temperature = 0;
  int64_t max_new_tokens = 1024;
  std::string request;
};

class Judge final : public engine::Node {
 public:
  static void describe(engine::Contract<JudgeParams>& contract);

  Judge(const JudgeParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  // The samples of one micro-batch that are being judged.
  struct Judged {
    const ScoredSamples& samples;
    const engine::OutsideWait wait;
    ScoredTexts& texts;
    FailedSamples& failed;
    HttpRetries& retries;
  };

  std::vector<size_t> ask(const std::vector<size_t>& asked, int64_t time, const Judged& judged);
  std::string request(const ScoredSamples& samples, size_t sample) const;

  // Of the reply to one request; its fault says what was answered, or how the request failed.
  Verdict verdict_of(const HttpReply& reply) const;

  const JudgeParams params_;
  const std::string node_;
  const PromptTemplate rubric_;
  const VerdictReader reader_;
  const Json request_;  // what all requests have beside the messages
  HttpClient client_;
  engine::MetricsRecorder& metrics_;
  engine::OutsideWork* const outside_;
};

}  // namespace sluice::nodes
