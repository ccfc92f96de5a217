#include "nodes/generate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "nodes/columns.h"

namespace sluice::nodes {

using engine::Group;

namespace {

std::vector<int64_t> end_of_sequence_ids(const LanguageModel& model) {
  std::vector<int64_t> ids = model.config().end_of_sequence;
  if (const auto id = model.tokenizer().end_of_sequence(); id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  return ids;
}

models::GenerationOptions options_of(const GenerateParams& params, const LanguageModel& model) {
  models::GenerationOptions options;
  options.sampling = {.temperature = params.temperature, .top_k = params.top_k, .top_p = params.top_p};
  if (!params.ignore_end_of_sequence) options.end_of_sequence = end_of_sequence_ids(model);
  return options;
}

// Bytes of text that one sampled token is taken to decode to, for the plan: an estimate, since the true bound, the longest entry
// of a vocabulary, is often 100 spaces and more. No answer of GSM8K has more than 5 in the vocabularies of GPT-2, Qwen2 and
// Falcon.
constexpr int64_t kTextBytesOfToken = 8;

int64_t step_tokens(const GenerateParams& params) {
  return std::max(models::GenerationLimits{}.max_step_tokens, params.max_running_samples);
}

// The pool has the blocks that the plan promised.
models::GenerationLimits limits_of(const GenerateParams& params, const models::ModelConfig& config, int64_t pool_bytes) {
  models::GenerationLimits limits;
  limits.max_running_samples = params.max_running_samples;
  limits.max_step_tokens = step_tokens(params);
  const int64_t block_bytes = models::kv_bytes(config, limits.kv_block_size);
  limits.kv_blocks = pool_bytes / block_bytes;
  const int64_t worst_sample = params.max_prompt_tokens + params.max_new_tokens;
  SLUICE_CHECK(limits.kv_blocks * limits.kv_block_size >= worst_sample, "a KV pool of " + std::to_string(pool_bytes) +
                                                                            " bytes does not hold one sample of " +
                                                                            std::to_string(worst_sample) + " tokens");
  return limits;
}

void find_contradictions(const GenerateParams& params, engine::Findings& findings) {
  if (params.temperature > 0) return;
  const auto no_effect = [&](const char* key) {
    findings.without_effect(key, std::string(key) + " has no effect at temperature 0, which takes the likeliest token",
                            "remove " + std::string(key) + ", or set a temperature");
  };
  if (params.top_k != 0) no_effect("top_k");
  if (params.top_p != 1) no_effect("top_p");
  if (params.samples_per_prompt > 1) {
    findings.warning("samples_per_prompt", "at temperature 0 all samples of a prompt are alike",
                     "samples_per_prompt = 1, or a temperature");
  }
}

}  // namespace

void Generate::describe(engine::Contract<GenerateParams>& c) {
  using P = GenerateParams;
  c.type("generate", "samples responses from a model");
  c.model("model", &P::model, engine::ModelUse::kSamples, "language_model").required().doc("whose published weights are sampled");
  c.param("samples_per_prompt", &P::samples_per_prompt).between(1, 65536).doc("responses for each prompt: a group");
  c.param("max_new_tokens", &P::max_new_tokens).required().between(1, 1 << 24).unit("tokens").doc("a response is cut there");
  c.param("max_prompt_tokens", &P::max_prompt_tokens).between(1, 1 << 24).unit("tokens").doc("a longer prompt is an error");
  c.param("temperature", &P::temperature).at_least(0).doc("divides the logits; 0 takes the likeliest token");
  c.param("top_k", &P::top_k).at_least(0).doc("keeps the k likeliest tokens; 0 keeps all");
  c.param("top_p", &P::top_p).between(0, 1).above(0).doc("keeps the likeliest tokens with this share; 1 keeps all");
  c.param("max_running_samples", &P::max_running_samples).between(1, 65536).doc("decoded side by side; the others wait");
  c.param("ignore_end_of_sequence", &P::ignore_end_of_sequence).doc("every sample runs to max_new_tokens");
  c.param("add_special_tokens", &P::add_special_tokens)
      .doc("puts the tokenizer's special tokens around each prompt; false for prompts that a chat template wrote");
  c.reads(columns::kPrompt);
  c.writes(columns::kTokens, columns::kRolloutLogprobs, columns::kResponse, columns::kFinish);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.samples_per_group = params.samples_per_prompt;
    needs.least_sample_tokens = 1 + params.max_new_tokens;
    needs.worst_sample_tokens = params.max_prompt_tokens + params.max_new_tokens;
    needs.step_tokens = step_tokens(params);
    needs.running_samples = params.max_running_samples;
    needs.string_bytes[columns::kResponse.spec().name] = params.max_new_tokens * kTextBytesOfToken;
    needs.must_agree["add_special_tokens"] = params.add_special_tokens ? 1 : 0;
    needs.must_agree["temperature"] =
        params.temperature > 0 ? params.temperature : 1.0;  // greedy: log-probabilities of temperature 1
  });
  c.check(find_contradictions);
  c.metric("response_length", "mean tokens of a response");
  c.metric("truncated", "share of the responses that max_new_tokens cut");
  c.metric("kv_used_bytes_max", "most bytes of the KV pool that running samples used at a time");
}

Generate::Generate(const GenerateParams& params, engine::NodeResources& resources)
    : params_(params),
      model_(language_model(resources, params.model)),
      seed_(resources.seed),
      metrics_(*resources.metrics),
      engine_(model_->config(), options_of(params, *model_), limits_of(params, model_->config(), resources.kv_bytes)) {}

void Generate::begin_iteration(const engine::Iteration& iteration) {
  SLUICE_CHECK(idle(), "an iteration begins while another is being sampled");
  weights_ = &model_->sampling_weights(iteration.policy_version);
}

const std::vector<int64_t>& Generate::prompt_tokens(const Group& group) const {
  const auto [place, missing] = tokenized_.try_emplace({group.iteration, group.index});
  if (missing) place->second = model_->tokenizer().encode(group.read(columns::kPrompt)[0], params_.add_special_tokens);
  const std::vector<int64_t>& tokens = place->second;
  const auto count = static_cast<int64_t>(tokens.size());
  if (count == 0)
    throw UserError("the prompt of group " + std::to_string(group.index) + " is empty", "remove it from the prompts");
  if (count > params_.max_prompt_tokens) {
    throw UserError("the prompt of group " + std::to_string(group.index) + " has " + plural(count, "token") +
                        ", max_prompt_tokens is " + std::to_string(params_.max_prompt_tokens),
                    "max_prompt_tokens >= " + std::to_string(count) + ", or leave such prompts out");
  }
  return tokens;
}

int64_t Generate::worst_tokens(const Group& prompt) const {
  return params_.samples_per_prompt * (static_cast<int64_t>(prompt_tokens(prompt).size()) + params_.max_new_tokens);
}

void Generate::start(Group prompt) {
  RunningGroup running;
  running.prompt = prompt_tokens(prompt);
  running.results.resize(static_cast<size_t>(params_.samples_per_prompt));
  running.unfinished = params_.samples_per_prompt;
  for (int64_t sample = 0; sample < params_.samples_per_prompt; ++sample) {
    engine_.submit({.id = static_cast<uint64_t>(prompt.index * params_.samples_per_prompt + sample),
                    .prompt = running.prompt,
                    .max_new_tokens = params_.max_new_tokens,
                    .stream = RandomStream(seed_, static_cast<uint64_t>(prompt.iteration), static_cast<uint32_t>(prompt.index),
                                           static_cast<uint32_t>(sample))});
  }
  tokenized_.erase({prompt.iteration, prompt.index});
  const int64_t index = prompt.index;
  running.group = std::move(prompt);
  running_.emplace(index, std::move(running));
}

void Generate::step(Sink& sink) {
  SLUICE_CHECK(weights_ != nullptr, "a step before the first iteration began");
  const at::NoGradGuard no_gradient;
  std::vector<models::SampleResult> finished = engine_.step(*weights_);
  sink.worked(engine_.last_step().prompt_tokens, engine_.last_step().sampled_tokens);
  for (models::SampleResult& result : finished) take(std::move(result), sink);
}

void Generate::take(models::SampleResult result, Sink& sink) {
  const auto id = static_cast<int64_t>(result.id);
  const auto found = running_.find(id / params_.samples_per_prompt);
  SLUICE_CHECK(found != running_.end(), "a sample of no running group ended");
  const auto length = static_cast<int64_t>(result.tokens.size());
  metrics_.mean("response_length", static_cast<double>(length));
  metrics_.mean("truncated", result.finish == models::FinishReason::kLength);
  if (length < params_.max_new_tokens) sink.return_credit(found->first, params_.max_new_tokens - length);

  RunningGroup& running = found->second;
  running.results[static_cast<size_t>(id % params_.samples_per_prompt)] = std::move(result);
  if (--running.unfinished > 0) return;
  RunningGroup complete = std::move(running);
  running_.erase(found);
  sink.finish(completed(std::move(complete)));
}

Group Generate::completed(RunningGroup running) const {
  Group group = std::move(running.group);
  const auto prompt_length = static_cast<int64_t>(running.prompt.size());
  group.layout = {};
  for (const models::SampleResult& result : running.results) {
    const auto length = static_cast<int64_t>(result.tokens.size());
    group.layout.add_sample(prompt_length + length, length);
  }
  group.layout.end_group();

  const auto tokens = group.write(columns::kTokens);             // [T]
  const auto logprobs = group.write(columns::kRolloutLogprobs);  // [A]
  const auto responses = group.write(columns::kResponse);        // [S]
  const auto finishes = group.write(columns::kFinish);           // [S]
  auto next_token = tokens.begin();
  auto next_logprob = logprobs.begin();
  for (size_t s = 0; s < running.results.size(); ++s) {
    const models::SampleResult& result = running.results[s];
    next_token = std::ranges::copy(running.prompt, next_token).out;
    next_token = std::ranges::copy(result.tokens, next_token).out;
    next_logprob = std::ranges::copy(result.logprobs, next_logprob).out;
    const bool ended = result.finish == models::FinishReason::kEndOfSequence;
    responses[s] =
        model_->tokenizer().decode(std::span(result.tokens).first(result.tokens.size() - (ended ? 1 : 0)), /*skip_special=*/true);
    finishes[s] = static_cast<uint8_t>(ended ? Finish::kEndOfSequence : Finish::kLength);
  }
  return group;
}

void Generate::end_iteration(const engine::Iteration&) {
  metrics_.maximum("kv_used_bytes_max", static_cast<double>(engine_.take_kv_peak_bytes()));
}

}  // namespace sluice::nodes
