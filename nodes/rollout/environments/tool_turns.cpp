#include "nodes/rollout/environments/tool_turns.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text/utf8.h"

namespace sluice::nodes {
namespace {

bool has_broken_down(const ToolAnswer& answer) { return !answer.breakdown.empty(); }

}  // namespace

ToolTurns::ToolTurns(std::shared_ptr<const ModelText> text, text::ToolChat chat, ToolLimits limits,
                     std::unique_ptr<ToolSource> opened, Open open)
    : text_(std::move(text)), chat_(std::move(chat)), limits_(limits), open_(std::move(open)), breakdowns_(limits.breakdowns) {
  idle_.push_back(std::move(opened));
}

Reply ToolTurns::reply(const Turn& turn) const {
  const text::Tokenizer& tokenizer = text_->tokenizer();
  const std::span<const int64_t> tokens = turn.tokens;
  const std::span<const int64_t> said = tokens.first(tokens.size() - (turn.ended_sequence ? 1 : 0));
  const std::string end = tokenizer.decode(tokens.subspan(said.size()));
  const text::ParsedTurn parsed = chat_.parse(tokenizer.decode(said), turn.index, end);
  if (parsed.calls.empty()) return {.text = {}, .done = true, .reward = {}};

  std::vector<ToolAnswer> answers = this->answers(parsed.calls, turn);
  Reply reply{.text = {}, .done = false, .reward = {}};
  reply.counts[kToolCalls] = static_cast<double>(answers.size());
  const auto broken = std::ranges::count_if(answers, has_broken_down),
             failed = std::ranges::count_if(answers, &ToolAnswer::failed);
  reply.counts[kFailedToolCalls] = static_cast<double>(failed - broken);
  reply.counts[kBrokenToolCalls] = static_cast<double>(broken);
  std::vector<text::ToolResult> results;
  for (size_t i = 0; i < answers.size(); ++i)
    results.push_back({.call = parsed.calls[i], .text = shortened(std::move(answers[i].text))});
  reply.text = chat_.after(results, end, turn.index);
  return reply;
}

// Ends when: all calls were answered, or the time for them has passed: those that are left are then answered so.
std::vector<ToolAnswer> ToolTurns::answers(const std::vector<text::ToolCall>& calls, const Turn& turn) const {
  const auto until = Subprocess::Clock::now() + limits_.turn;
  std::unique_ptr<ToolSource> source = take();
  std::vector<ToolAnswer> answers;
  for (const text::ToolCall& call : calls) {
    if (!call.fault.empty())
      answers.push_back({.text = "error: " + call.fault, .failed = true});
    else if (Subprocess::Clock::now() >= until)
      answers.push_back(
          {.text = "error: the tool did not answer in time", .failed = true, .breakdown = "no time was left for it"});
    else
      answers.push_back(source->call(call.name, call.arguments, {until, turn.wait}));
    breakdowns_.note(answers.back(), turn);
  }
  give_back(std::move(source));
  return answers;
}

std::unique_ptr<ToolSource> ToolTurns::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<ToolSource> source = std::move(idle_.back());
      idle_.pop_back();
      return source;
    }
  }
  return open_();
}

void ToolTurns::give_back(std::unique_ptr<ToolSource> source) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(source));
}

// Between two characters.
std::string ToolTurns::shortened(std::string text) const {
  if (text.size() <= limits_.result_bytes) return text;
  const std::string note = "\n[cut: " + std::to_string(text.size()) + " bytes]";
  size_t kept = limits_.result_bytes;
  while (kept > 0 && is_continuation(text[kept])) --kept;
  text.resize(kept);
  return text + note;
}

}  // namespace sluice::nodes
