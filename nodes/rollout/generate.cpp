#include "nodes/rollout/generate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/contract/columns/contract_breach.h"
#include "engine/observe/guess_metrics.h"
#include "nodes/columns/columns.h"
#include "nodes/models/model_parts.h"
#include "nodes/rollout/generate_limits.h"

namespace sluice::nodes {

using engine::Group;

namespace {

constexpr const char* kDroppedPrompts = "rollout/dropped_prompts";

[[noreturn]] void fail_because_of_no_tokens(const Group& group) {
  const std::string& prompt = group.read(columns::kPrompt)[0];
  throw UserError(
      "the prompt of group " + std::to_string(group.index) + " " +
          (prompt.empty() ? "is empty" : "has no tokens: the tokenizer knows none of its text, " + sluice::quoted(prompt)),
      "remove it from the prompts; rlhf-run validate FILE.toml --data names its row");
}

std::vector<int64_t> ends_of(const GenerateParams& params, const SampledWeights& model, const ModelText& text) {
  if (params.ignore_end_of_sequence) return {};
  return sequence_ends(model.config(), text.tokenizer(), text.folder());
}

models::GenerationOptions options_of(const GenerateParams& params, const SampledWeights& model, const SampledWeights* draft,
                                     const ModelText& text) {
  models::GenerationOptions options;
  options.sampling = {.temperature = params.temperature.at(0),
                      .top_k = params.top_k,
                      .top_p = params.top_p,
                      .min_p = params.min_p,
                      .repetition_penalty = params.repetition_penalty,
                      .presence_penalty = params.presence_penalty,
                      .frequency_penalty = params.frequency_penalty};
  options.precision = model.precision();
  options.device = model.device();
  if (SamplingLead* const lead = model.lead()) options.together = lead->steps();
  options.end_of_sequence = ends_of(params, model, text);
  options.keeps_routes = params.routes;
  if (draft != nullptr)
    options.draft = models::DraftOptions{.config = draft->config(), .precision = draft->precision(), .device = draft->device()};
  return options;
}

std::shared_ptr<const Environment> environment_of(const GenerateParams& params, const std::shared_ptr<const ModelText>& text) {
  if (!params.has_environment()) return nullptr;
  SLUICE_CHECK(params.environment.object != nullptr, "an environment that was not made");
  std::shared_ptr<const Environment> of_model = params.environment.object->for_model(text);
  return of_model ? of_model : params.environment.object;
}

TurnRules rules_of(const GenerateParams& params, const std::shared_ptr<const ModelText>& text,
                   std::vector<int64_t> end_of_sequence, const engine::NodeResources& resources) {
  return {.stop = params.stop,
          .turn_ends = all_turn_ends(params),
          .environment = environment_of(params, text),
          .max_turns = params.max_turns,
          .max_new_tokens = params.max_new_tokens,
          .end_of_sequence = std::move(end_of_sequence),
          .outside = resources.outside,
          .node = resources.node};
}

// The step of one sample takes as long as reading the weights, and a few rows more hardly longer. Those of several samples cost
// more, and hold up the one among them that takes longest.
models::DraftLimits drafts_of(const GenerateParams& params) {
  if (params.speculation == Speculation::kNone) return {};
  return {.tokens = params.speculation_tokens, .samples = params.speculation == Speculation::kAuto ? 1 : 0};
}

int64_t block_bytes_of(const SampledWeights& model, int64_t block_size) {
  return models::kv_bytes(models::heads_of(model.config(), model.share().ranks), block_size, model.precision());
}

// The pool has the blocks that the plan promised, of both models where one guesses.
models::GenerationLimits limits_of(const GenerateParams& params, const SampledWeights& model, const SampledWeights* draft,
                                   const engine::NodeResources& resources) {
  const int64_t pool_bytes = resources.kv_bytes;
  models::GenerationLimits limits;
  if (resources.admission == engine::Admission::kOnDemand) limits.admission = models::KvAdmission::kOnDemand;
  limits.max_running_samples = params.max_running_samples;
  limits.max_step_tokens = step_tokens(params);
  const int64_t routes = params.routes ? limits.kv_block_size * models::route_form(model.config()).token_bytes() : 0;
  const int64_t of_draft = draft == nullptr ? 0 : block_bytes_of(*draft, limits.kv_block_size);
  limits.kv_blocks = pool_bytes / (block_bytes_of(model, limits.kv_block_size) + routes + of_draft);
  const int64_t worst_sample = params.max_prompt_tokens + params.max_new_tokens;
  limits.drafts = drafts_of(params);
  SLUICE_CHECK(limits.kv_blocks * limits.kv_block_size >= worst_sample, "a KV pool of " + std::to_string(pool_bytes) +
                                                                            " bytes does not hold one sample of " +
                                                                            std::to_string(worst_sample) + " tokens");
  return limits;
}

// The tokens of a sample that were sampled: all after the prompt but those that it was given.
void actions_of(const models::SampleResult& result, int64_t prompt, std::vector<int64_t>& actions) {
  actions.clear();
  const auto tokens = static_cast<int64_t>(result.tokens.size());
  int64_t next = 0;
  const auto add_until = [&](int64_t end) {
    for (; next < end; ++next) actions.push_back(prompt + next);
  };
  for (const models::TokenRun& given : result.given) {
    add_until(given.begin);
    next = given.end;
  }
  add_until(tokens);
}

}  // namespace

Generate::Generate(const GenerateParams& params, engine::NodeResources& resources)
    : params_(params),
      sampled_(sampled_weights(resources, params.model)),
      draft_(params.has_draft() ? sampled_weights(resources, params.draft) : nullptr),
      text_(model_text(resources, params.model)),
      seed_(resources.seed),
      metrics_(*resources.metrics),
      engine_(sampled_->config(), options_of(params, *sampled_, draft_.get(), *text_),
              limits_of(params, *sampled_, draft_.get(), resources)),
      turns_(rules_of(params, text_, ends_of(params, *sampled_, *text_), resources), text_->tokenizer()),
      on_demand_(resources.admission == engine::Admission::kOnDemand),
      credit_(kCreditRoom, engine::order_of_groups(resources.world)),
      weights_(sampled_, resources.update),
      update_kv_(resources.update_kv) {
  if (turns_.idle_rules() && !on_demand_) return;
  engine_.set_judge([this](uint64_t id, std::span<const int64_t> tokens) { return judge(id, tokens); });
}

engine::SampleCredit::Key Generate::key_of(uint64_t id) const {
  const int64_t responses = params_.responses_per_prompt();
  return {static_cast<int64_t>(id) / responses, static_cast<int64_t>(id) % responses};
}

uint64_t Generate::id_of(const engine::SampleCredit::Key& key) const {
  return static_cast<uint64_t>(key.group * params_.responses_per_prompt() + key.sample);
}

// The next token needs credit too, unless there is no room for it.
models::Next Generate::judge(uint64_t id, std::span<const int64_t> tokens) {
  if (on_demand_) {
    const engine::SampleCredit::Key key = key_of(id);
    const int64_t prompt = running_.at(key.group).prompt.size();
    credit_.set_need(key, std::min(most_tokens(prompt), prompt + static_cast<int64_t>(tokens.size()) + 1));
  }
  return turns_.idle_rules() ? models::Next::kGoesOn : turns_.judge(id, tokens);
}

void Generate::begin_iteration(const engine::Iteration& iteration) {
  SLUICE_CHECK(idle(), "an iteration begins while another is being sampled");
  weights_.begin_iteration(iteration.policy_version);
  engine_.forget_prefixes();
  tokenized_.clear();  // of groups that other ranks have made
  engine_.set_temperature(params_.temperature.at(iteration.index));
}

const std::vector<int64_t>& Generate::prompt_tokens(const Group& group) const {
  const auto [place, missing] = tokenized_.try_emplace({group.iteration, group.index});
  if (missing) place->second = text_->tokenizer().encode(group.read(columns::kPrompt)[0], adds_special_tokens(group));
  const std::vector<int64_t>& tokens = place->second;
  if (tokens.empty()) fail_because_of_no_tokens(group);
  return tokens;
}

bool Generate::adds_special_tokens(const Group& group) const {
  if (params_.add_special_tokens) return *params_.add_special_tokens;
  const auto of_conversation = [](const Group::NamedColumn& column) {
    return column.spec == columns::kMessages.spec() && !column.data.entries<std::string>()[0].empty();
  };
  return std::ranges::none_of(group.columns, of_conversation);
}

bool Generate::wants(const Group& prompt) {
  const auto count = static_cast<int64_t>(prompt_tokens(prompt).size());
  if (count <= params_.max_prompt_tokens) return true;
  if (params_.prompt_too_long == TooLong::kRefuse) {
    throw UserError(
        "the prompt of group " + std::to_string(prompt.index) + " has " + plural(count, "token") + ", max_prompt_tokens is " +
            std::to_string(params_.max_prompt_tokens),
        "max_prompt_tokens >= " + std::to_string(count) + ", or leave such prompts out with prompt_too_long = \"drop\"");
  }
  tokenized_.erase({prompt.iteration, prompt.index});
  metrics_.sum(kDroppedPrompts, 1);
  return false;
}

int64_t Generate::worst_tokens(const Group& prompt) const {
  return params_.responses_per_prompt() * most_tokens(static_cast<int64_t>(prompt_tokens(prompt).size()));
}

int64_t Generate::least_tokens(const Group& prompt) const {
  const auto tokens = static_cast<int64_t>(prompt_tokens(prompt).size());
  return params_.responses_per_prompt() * credit_.least(tokens, most_tokens(tokens));
}

void Generate::start(Group prompt) {
  const int64_t responses = params_.responses_per_prompt(), index = prompt.index;
  RunningGroup& running = running_[index];
  running.prompt = prompt_tokens(prompt);
  running.responses.resize(static_cast<size_t>(responses));
  running.unfinished = responses;
  tokenized_.erase({prompt.iteration, index});
  running.group = std::move(prompt);
  for (int64_t sample = 0; sample < responses; ++sample) {
    const auto id = static_cast<uint64_t>(index * responses + sample);
    turns_.begin(id, running.group, sample);
    running.responses[static_cast<size_t>(sample)].versions = {{.begin = 0, .version = weights_.version()}};
    if (on_demand_) credit_.start({index, sample}, running.prompt.size(), most_tokens(running.prompt.size()));
    engine_.submit({.id = id,
                    .prompt = running.prompt,
                    .max_new_tokens = params_.max_new_tokens,
                    .stream = RandomStream(seed_, static_cast<uint64_t>(running.group.iteration), static_cast<uint32_t>(index),
                                           static_cast<uint32_t>(sample)),
                    .greedy = is_baseline(sample)});
  }
}

void Generate::step(Sink& sink) {
  SLUICE_CHECK(weights_.is_set(), "a step before the first iteration began");
  const at::NoGradGuard no_gradient;
  go_on(sink);
  if (weights_.begin_step()) change_weights();
  const std::span<models::SampleResult> finished = engine_.step(weights_.weights(), draft_ ? &draft_->at(0) : nullptr);
  weights_.end_step();
  const int64_t kv_bytes = engine_.take_kv_peak_bytes();
  iteration_kv_bytes_ = std::max(iteration_kv_bytes_, kv_bytes);
  most_kv_bytes_ = std::max(most_kv_bytes_, kv_bytes);
  const models::StepWork& work = engine_.last_step();
  sink.worked(work.prompt_tokens, work.sampled_tokens);
  record_drafts(work);
  for (models::SampleResult& result : finished) take(std::move(result), sink);
  if (on_demand_) settle_credit(sink);
  if (work.prompt_tokens + work.sampled_tokens == 0) turns_.wait();  // every running sample waits for a reply
}

// Samples that run go on with newer weights; those that start read their prompts with them.
void Generate::change_weights() {
  metrics_.sum("engine/weight_updates", 1);
  std::vector<uint64_t> had_begun;
  for (auto& [index, running] : running_) {
    for (size_t sample = 0; sample < running.responses.size(); ++sample) {
      Response& response = running.responses[sample];
      if (response.ended) continue;
      const uint64_t id = id_of({index, static_cast<int64_t>(sample)});
      add_version(response.versions, engine_.sampled(id).size(), weights_.version());
      if (engine_.kv_tokens(id) > 0) had_begun.push_back(id);
    }
  }
  const bool reads_again = update_kv_ == engine::KvAtUpdate::kReadAgain;
  for (size_t i = 0; i < had_begun.size() && reads_again; ++i) engine_.preempt(had_begun[i]);
  engine_.forget_prefixes();
  for (size_t i = 0; i < had_begun.size() && reads_again; ++i) engine_.restart(had_begun[i]);
}

// Samples that paused for a reply which has come.
void Generate::go_on(Sink& sink) {
  for (Turns::Decision& decision : turns_.decide()) {
    if (!decision.ends) {
      resume(decision);
      continue;
    }
    models::SampleResult result = engine_.end(decision.id);
    const auto begin = static_cast<int64_t>(result.tokens.size());
    result.tokens.insert(result.tokens.end(), decision.given.begin(), decision.given.end());
    if (!decision.given.empty()) result.given.push_back({begin, static_cast<int64_t>(result.tokens.size())});
    // Nobody reads them.
    if (params_.routes)
      models::append_open_tokens(models::route_form(sampled_->config()), std::ssize(decision.given), result.routes);
    take(std::move(result), sink);
  }
}

// On demand a reply is read when there is credit for it and the token after it.
void Generate::resume(const Turns::Decision& decision) {
  if (on_demand_) {
    const engine::SampleCredit::Key key = key_of(decision.id);
    const auto tokens = static_cast<int64_t>(engine_.sampled(decision.id).size() + decision.given.size());
    credit_.set_need(key, running_.at(key.group).prompt.size() + tokens + 1);
    if (!credit_.holds(key)) {
      replies_[decision.id] = decision;
      return;
    }
  }
  engine_.resume(decision.id, decision.given);
}

// Who may go on, and who has to give way.
void Generate::settle_credit(Sink& sink) {
  const engine::SampleCredit::Changes changes = credit_.settle(sink);
  for (const engine::SampleCredit::Key& key : changes.preempted) {
    const uint64_t id = id_of(key);
    const bool had_begun = engine_.kv_tokens(id) > 0;
    const int64_t text = running_.at(key.group).prompt.size() + static_cast<int64_t>(engine_.sampled(id).size());
    metrics_.sum("engine/preempted_samples", 1);
    metrics_.sum("engine/recomputed_tokens", had_begun ? static_cast<double>(text) : 0);
    engine_.preempt(id);
  }
  for (const engine::SampleCredit::Key& key : changes.restarted) engine_.restart(id_of(key));
  std::erase_if(replies_, [&](const auto& reply) {
    const bool fed = credit_.holds(key_of(reply.first));
    if (fed) engine_.resume(reply.first, reply.second.given);
    return fed;
  });
  for (auto next = running_.begin(); next != running_.end();)
    if (const auto group = next++; credit_.may_finish(group->first)) hand_on(group, sink);
}

void Generate::take(models::SampleResult result, Sink& sink) {
  const engine::SampleCredit::Key key = key_of(result.id);
  const auto found = running_.find(key.group);
  SLUICE_CHECK(found != running_.end(), "a sample of no running group ended");
  RunningGroup& running = found->second;
  Response& response = running.responses[static_cast<size_t>(key.sample)];
  response.summary = turns_.end(result);
  response.result = std::move(result);
  response.ended = true;

  const int64_t prompt = running.prompt.size();
  const int64_t kept = is_baseline(key.sample) ? 0 : prompt + static_cast<int64_t>(response.result.tokens.size());
  --running.unfinished;
  if (on_demand_) return credit_.end(key, kept, sink);
  if (kept < most_tokens(prompt)) sink.return_credit(key.group, most_tokens(prompt) - kept);
  if (running.unfinished == 0) hand_on(found, sink);
}

void Generate::hand_on(std::map<int64_t, RunningGroup>::iterator complete, Sink& sink) {
  RunningGroup running = std::move(complete->second);
  credit_.forget(complete->first);
  running_.erase(complete);
  record(running);
  sink.finish(completed(std::move(running)));
}

// Of a group as a whole, and nothing else between: what is recorded goes with it to the rank that it was made for.
void Generate::record(const RunningGroup& group) {
  if (params_.prompt_too_long == TooLong::kDrop) metrics_.sum(kDroppedPrompts, 0);
  for (int64_t sample = 0; sample < params_.samples_per_prompt; ++sample) {
    record(group.responses[static_cast<size_t>(sample)]);
    if (weights_.may_change()) record_lag(group.responses[static_cast<size_t>(sample)], group.group.iteration);
  }
}

void Generate::record_lag(const Response& response, int64_t iteration) {
  std::vector<int64_t> actions;
  actions_of(response.result, /*prompt=*/0, actions);
  for (const int64_t token : actions) {
    const int64_t version = version_of(response.versions, static_cast<size_t>(token));
    metrics_.mean("rollout/policy_lag_mean", static_cast<double>(iteration - version));
  }
}

void Generate::record(const Response& response) {
  metrics_.mean("rollout/response_length_mean", static_cast<double>(response.result.tokens.size()));
  metrics_.maximum("rollout/response_length_max", static_cast<double>(response.result.tokens.size()));
  metrics_.mean("rollout/truncated", response.summary.finish == Finish::kLength);
  if (!turns_.idle_rules()) metrics_.mean("rollout/stopped", response.summary.finish == Finish::kStopString);
  if (!params_.has_environment()) return;
  metrics_.mean("rollout/turns_mean", static_cast<double>(response.summary.turns));
  metrics_.moments("reward/environment_score", response.summary.score);
  for (const auto& [name, count] : response.summary.counts) check_declared(name);
  for (const engine::MetricSpec& metric : params_.environment.metrics) {
    const auto count = response.summary.counts.find(metric.name);
    metrics_.mean(metric.name, count == response.summary.counts.end() ? 0 : count->second);
  }
}

void Generate::check_declared(const std::string& count) const {
  const auto& metrics = params_.environment.metrics;
  if (std::ranges::find(metrics, count, &engine::MetricSpec::name) == metrics.end())
    engine::throw_contract_breach("the environment counts '" + count + "', which its contract does not declare as a metric");
}

// Without the token that ended it.
std::string Generate::text_of(const Response& response) const {
  const bool ended = response.summary.finish == Finish::kEndOfSequence;
  const std::span tokens = std::span(response.result.tokens).first(response.result.tokens.size() - (ended ? 1 : 0));
  return text_->tokenizer().decode(tokens, /*skip_special=*/true);
}

Group Generate::completed(RunningGroup running) const {
  Group group = std::move(running.group);
  const auto responses = std::span(running.responses).first(static_cast<size_t>(params_.samples_per_prompt));
  group.layout = {};
  std::vector<int64_t> actions;
  for (const Response& response : responses) {
    actions_of(response.result, running.prompt.size(), actions);
    group.layout.add_sample(running.prompt.size() + static_cast<int64_t>(response.result.tokens.size()), actions);
  }
  group.layout.end_group();
  write_samples(responses, running.prompt.ids(), group);
  if (params_.baseline) group.write(columns::kBaselineResponse)[0] = text_of(running.responses.back());
  return group;
}

void Generate::write_samples(std::span<Response> samples, std::span<const int64_t> prompt, Group& group) const {
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
    responses[s] = text_of(samples[s]);
    finishes[s] = static_cast<uint8_t>(samples[s].summary.finish);
  }
  if (params_.routes)
    std::ranges::transform(samples, group.write(columns::kRoutes).begin(),
                           [](Response& sample) { return std::move(sample.result.routes); });
  if (params_.token_versions) write_versions(samples, group);
  if (!params_.has_environment()) return;
  const auto scores = group.write(columns::kEnvironmentScore);  // [S]
  std::ranges::transform(samples, scores.begin(), [](const Response& r) { return static_cast<float>(r.summary.score); });
}

void Generate::write_versions(std::span<const Response> samples, Group& group) const {
  auto next = group.write(columns::kTokenVersions).begin();  // [A]
  std::vector<int64_t> actions;
  for (const Response& response : samples) {
    actions_of(response.result, /*prompt=*/0, actions);
    for (const int64_t token : actions) *next++ = version_of(response.versions, static_cast<size_t>(token));
  }
}

void Generate::record_drafts(const models::StepWork& work) {
  if (params_.speculation == Speculation::kNone) return;
  metrics_.sum(engine::metrics::kGuessedSteps, static_cast<double>(work.guessed_steps));
  metrics_.sum(engine::metrics::kDraftedTokens, static_cast<double>(work.drafted_tokens));
  metrics_.sum(engine::metrics::kKeptDrafts, static_cast<double>(work.kept_drafts));
}

void Generate::end_iteration(const engine::Iteration&) {
  record_drafts({});  // told of every iteration, also of one without
  metrics_.maximum("memory/kv_used_bytes_max", static_cast<double>(std::exchange(iteration_kv_bytes_, 0)));
  if (weights_.may_change()) metrics_.sum("engine/weight_updates", 0);
  if (on_demand_) {  // told of every iteration, also of one without
    metrics_.sum("engine/preempted_samples", 0);
    metrics_.sum("engine/recomputed_tokens", 0);
  }
  if (params_.prompt_too_long == TooLong::kDrop) metrics_.sum(kDroppedPrompts, 0);  // likewise
}

}  // namespace sluice::nodes
