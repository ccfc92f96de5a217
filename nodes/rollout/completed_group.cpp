#include "nodes/rollout/completed_group.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "nodes/columns/columns.h"

namespace sluice::nodes {
namespace {

// Without the token that ended it.
std::string text_of(const Response& response, const ModelText& text) {
  const bool ended = response.summary.finish == Finish::kEndOfSequence;
  const std::span tokens = std::span(response.result.tokens).first(response.result.tokens.size() - (ended ? 1 : 0));
  return text.tokenizer().decode(tokens, /*skip_special=*/true);
}

engine::Layout layout_of(std::span<const Response> samples, int64_t prompt) {
  engine::Layout layout;
  for (const Response& response : samples)
    layout.add_sample(prompt + static_cast<int64_t>(response.result.tokens.size()), sampled_tokens(response.result, prompt));
  layout.end_group();
  return layout;
}

void write_samples(std::span<const Response> samples, std::span<const int64_t> prompt, const ModelText& text,
                   engine::Group& group) {
  const auto tokens = group.write(columns::kTokens);             // [T]
  const auto logprobs = group.write(columns::kRolloutLogprobs);  // [A]
  const auto responses = group.write(columns::kResponse);        // [S]
  const auto finishes = group.write(columns::kFinish);           // [S]
  auto next_token = tokens.begin();
  auto next_logprob = logprobs.begin();
  for (size_t s = 0; s < samples.size(); ++s) {
    const models::SampleResult& result = samples[s].result;
    next_token = std::ranges::copy(prompt, next_token).out;
    next_token = std::ranges::copy(result.tokens, next_token).out;
    next_logprob = std::ranges::copy(result.logprobs, next_logprob).out;
    responses[s] = text_of(samples[s], text);
    finishes[s] = static_cast<uint8_t>(samples[s].summary.finish);
  }
}

void write_versions(std::span<const Response> samples, engine::Group& group) {
  auto next = group.write(columns::kTokenVersions).begin();  // [A]
  for (const Response& response : samples) {
    for (const int64_t token : sampled_tokens(response.result, /*prompt=*/0))
      *next++ = version_of(response.versions, static_cast<size_t>(token));
  }
}

void write_environment_scores(std::span<const Response> samples, engine::Group& group) {
  const auto scores = group.write(columns::kEnvironmentScore);  // [S]
  std::ranges::transform(samples, scores.begin(), [](const Response& r) { return static_cast<float>(r.summary.score); });
}

}  // namespace

std::vector<int64_t> sampled_tokens(const models::SampleResult& result, int64_t prompt) {
  std::vector<int64_t> sampled;
  int64_t next = 0;
  const auto add_until = [&](int64_t end) {
    for (; next < end; ++next) sampled.push_back(prompt + next);
  };
  for (const models::TokenRun& given : result.given) {
    add_until(given.begin);
    next = given.end;
  }
  add_until(static_cast<int64_t>(result.tokens.size()));
  return sampled;
}

engine::Group completed(RunningGroup running, const GenerateParams& params, const ModelText& text) {
  engine::Group group = std::move(running.group);
  const auto samples = std::span(running.responses).first(static_cast<size_t>(params.samples_per_prompt));
  group.layout = layout_of(samples, running.prompt.size());
  write_samples(samples, running.prompt.ids(), text, group);
  if (params.routes)
    std::ranges::transform(samples, group.write(columns::kRoutes).begin(),
                           [](Response& sample) { return std::move(sample.result.routes); });
  if (params.token_versions) write_versions(samples, group);
  if (params.has_environment()) write_environment_scores(samples, group);
  if (params.baseline) group.write(columns::kBaselineResponse)[0] = text_of(running.responses.back(), text);
  return group;
}

}  // namespace sluice::nodes
