#include "nodes/rollout/turns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "text/tokenizer/first_tokens.h"

namespace sluice::nodes {

using models::FinishReason;
using models::Next;

namespace {

constexpr auto kMoment = std::chrono::milliseconds(50);

std::string label_of(const engine::Group& group) {
  const engine::ColumnSpec spec = columns::kLabel.spec();
  const bool has = std::ranges::any_of(group.columns, [&](const auto& column) { return column.spec == spec; });
  return has ? group.read(columns::kLabel)[0] : std::string();
}

std::string place(const Turn& turn) {
  return "the environment failed on turn " + std::to_string(turn.index) + " of sample " + std::to_string(turn.sample) +
         " of group " + std::to_string(turn.group) + ": ";
}

// Throws what was thrown, with its place in front; a bug stays one.
[[noreturn]] void rethrow(const std::exception_ptr& error, const Turn& turn) {
  try {
    std::rethrow_exception(error);
  } catch (const UserError& caught) {
    Problems problems = caught.problems();
    problems.front().message = place(turn) + problems.front().message;
    throw UserError(std::move(problems));
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& caught) {
    throw UserError(place(turn) + caught.what());
  }
}

}  // namespace

Turns::Turns(TurnRules rules, const text::Tokenizer& tokenizer) : rules_(std::move(rules)), tokenizer_(tokenizer) {
  if (rules_.environment) calls_ = std::make_unique<EnvironmentCalls>(rules_.environment, rules_.outside, rules_.node);
}

bool Turns::is_end(int64_t id) const { return std::ranges::find(rules_.end_of_sequence, id) != rules_.end_of_sequence.end(); }

void Turns::begin(uint64_t id, const engine::Group& group, int64_t sample) {
  if (idle_rules()) return;
  samples_.emplace(id, Sample{.group = &group, .index = sample, .text = text::ResponseText(tokenizer_), .finish = {}});
}

Next Turns::judge(uint64_t id, std::span<const int64_t> tokens) {
  Sample& sample = samples_.at(id);
  sample.text.push(tokens.back());
  sample.tokens = static_cast<int64_t>(tokens.size());
  if (sample.text.has(rules_.stop)) return Next::kEnds;
  if (!calls_) return Next::kGoesOn;
  const bool end = is_end(tokens.back());
  if (!end && !sample.text.has(rules_.turn_ends)) return Next::kGoesOn;
  sample.finish = end ? Finish::kEndOfSequence : Finish::kStopString;
  ask(id, sample, tokens.subspan(sample.turn_begin));
  return Next::kPauses;
}

void Turns::ask(uint64_t id, const Sample& sample, std::span<const int64_t> turn) {
  calls_->ask(id, {.prompt = sample.group->read(columns::kPrompt)[0],
                   .label = label_of(*sample.group),
                   .transcript = sample.text.all(),
                   .last = sample.text.turn(),
                   .tokens = {turn.begin(), turn.end()},
                   .ended_sequence = sample.finish == Finish::kEndOfSequence,
                   .index = sample.turns - 1,
                   .iteration = sample.group->iteration,
                   .group = sample.group->index,
                   .sample = sample.index,
                   .wait = {rules_.outside, sample.group->iteration}});
}

std::vector<Turns::Decision> Turns::decide() {
  std::vector<Decision> decisions;
  if (!calls_) return decisions;
  for (EnvironmentCalls::Answer& answer : calls_->take()) decisions.push_back(decide(std::move(answer)));
  return decisions;
}

Turns::Decision Turns::decide(EnvironmentCalls::Answer answer) {
  if (answer.error) rethrow(answer.error, answer.turn);
  Sample& sample = samples_.at(answer.id);
  Reply& reply = answer.reply;
  if (reply.reward && !std::isfinite(static_cast<float>(*reply.reward)))
    throw UserError(place(answer.turn) + "its reward is not finite, in 32 bits");
  sample.score += reply.reward.value_or(0);
  if (!std::isfinite(static_cast<float>(sample.score)))
    throw UserError(place(answer.turn) + "the rewards of the sample so far add up to more than 32 bits hold");
  for (const auto& [name, count] : reply.counts) {
    if (!std::isfinite(count)) throw UserError(place(answer.turn) + "its count of '" + name + "' is not finite");
    sample.counts[name] += count;
  }

  Decision decision{.id = answer.id, .ends = true, .given = {}};
  if (reply.done) return decision;
  if (sample.turns == rules_.max_turns) {
    sample.finish = Finish::kTurnLimit;
    return decision;
  }
  const auto room = static_cast<size_t>(rules_.max_new_tokens - sample.tokens);
  decision.given = text::first_tokens(tokenizer_, reply.text, room);
  if (decision.given.size() == room) {
    sample.finish = Finish::kLength;
    return decision;
  }
  decision.ends = false;
  for (const int64_t token : decision.given) sample.text.push(token);
  sample.text.begin_turn();
  sample.turn_begin = static_cast<size_t>(sample.tokens) + decision.given.size();
  sample.finish.reset();
  ++sample.turns;
  return decision;
}

void Turns::wait() {
  if (calls_) calls_->wait_for(kMoment);
}

Turns::Summary Turns::end(const models::SampleResult& result) {
  Summary summary;
  summary.finish = result.finish == FinishReason::kEndOfSequence ? Finish::kEndOfSequence
                   : result.finish == FinishReason::kStopped     ? Finish::kStopString
                                                                 : Finish::kLength;
  const auto found = samples_.find(result.id);
  if (found == samples_.end()) return summary;
  summary.finish = found->second.finish.value_or(summary.finish);
  summary.turns = found->second.turns;
  summary.score = found->second.score;
  summary.counts = std::move(found->second.counts);
  samples_.erase(found);
  return summary;
}

}  // namespace sluice::nodes
