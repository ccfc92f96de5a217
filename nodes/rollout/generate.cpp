#include "nodes/rollout/generate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/models/model_parts.h"
#include "nodes/rollout/completed_group.h"
#include "nodes/rollout/generate_options.h"

namespace sluice::nodes {

using engine::Group;

Generate::Generate(const GenerateParams& params, engine::NodeResources& resources)
    : params_(params),
      sampled_(sampled_weights(resources, params.model)),
      draft_(params.has_draft() ? sampled_weights(resources, params.draft) : nullptr),
      text_(model_text(resources, params.model)),
      prompts_(text_, params.add_special_tokens),
      seed_(resources.seed),
      metrics_(params, resources),
      options_(generation_options(params, *sampled_, draft_.get(), *text_)),
      engine_(sampled_->config(), options_, generation_limits(params, *sampled_, draft_.get(), resources)),
      turns_(turn_rules(params, text_, options_, resources), text_->tokenizer()),
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
  prompts_.clear();  // of groups that other ranks have made
  engine_.set_temperature(params_.temperature.at(iteration.index));
}

bool Generate::wants(const Group& prompt) {
  const auto count = static_cast<int64_t>(prompts_.of(prompt).size());
  if (count <= params_.max_prompt_tokens) return true;
  if (params_.prompt_too_long == TooLong::kRefuse) {
    throw UserError(
        "the prompt of group " + std::to_string(prompt.index) + " has " + plural(count, "token") + ", max_prompt_tokens is " +
            std::to_string(params_.max_prompt_tokens),
        "max_prompt_tokens >= " + std::to_string(count) + ", or leave such prompts out with prompt_too_long = \"drop\"");
  }
  prompts_.forget(prompt);
  metrics_.record_dropped_prompt();
  return false;
}

int64_t Generate::worst_tokens(const Group& prompt) const {
  return params_.responses_per_prompt() * most_tokens(static_cast<int64_t>(prompts_.of(prompt).size()));
}

int64_t Generate::least_tokens(const Group& prompt) const {
  const auto tokens = static_cast<int64_t>(prompts_.of(prompt).size());
  return params_.responses_per_prompt() * credit_.least(tokens, most_tokens(tokens));
}

void Generate::start(Group prompt) {
  const int64_t responses = params_.responses_per_prompt(), index = prompt.index;
  RunningGroup& running = running_[index];
  running.prompt = prompts_.take(prompt);
  running.responses.resize(static_cast<size_t>(responses));
  running.unfinished = responses;
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
  metrics_.record_kv(engine_.take_kv_peak_bytes());
  const models::StepWork& work = engine_.last_step();
  sink.worked(work.prompt_tokens, work.sampled_tokens);
  metrics_.record_step(work);
  for (models::SampleResult& result : finished) take(std::move(result), sink);
  if (on_demand_) settle_credit(sink);
  if (work.prompt_tokens + work.sampled_tokens == 0) turns_.wait();  // every running sample waits for a reply
}

// Samples that run go on with newer weights; those that start read their prompts with them.
void Generate::change_weights() {
  metrics_.record_weight_update();
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
    metrics_.record_preempted(had_begun ? text : 0);
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
  metrics_.record(running);
  sink.finish(completed(std::move(running), params_, *text_));
}

}  // namespace sluice::nodes
