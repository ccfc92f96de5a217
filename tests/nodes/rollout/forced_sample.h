#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nodes/rollout/environments/tool_turns.h"
#include "nodes/rollout/turns.h"
#include "tests/nodes/sampling.h"

namespace sluice::nodes::testing {

/// Answers each call with the next of the texts.
class Answers final : public ToolSource {
 public:
  explicit Answers(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  std::vector<Tool> list() override { return {}; }
  ToolAnswer call(const std::string&, const Json&, const AnswerWait&) override {
    return {.text = texts_.at(next_++ % texts_.size())};
  }

 private:
  std::vector<std::string> texts_;
  size_t next_ = 0;
};

inline std::shared_ptr<ToolTurns> tool_turns(const std::shared_ptr<const ModelText>& text, const text::ToolChat& chat,
                                             const std::vector<std::string>& answers) {
  return std::make_shared<ToolTurns>(text, chat, ToolLimits{}, std::make_unique<Answers>(answers),
                                     [] { return std::unique_ptr<ToolSource>(); });
}

/// The tokens of a sample whose turns say what a test wants, as `generate` puts them together.
class ForcedSample {
 public:
  ForcedSample(const text::Tokenizer& tokenizer, std::shared_ptr<const Environment> environment, int64_t end)
      : turns_({.stop = {},
                .turn_ends = {},
                .environment = std::move(environment),
                .max_new_tokens = 100'000,
                .end_of_sequence = {end}},
               tokenizer) {
    turns_.begin(0, group_, 0);
  }

  /// Whether another turn follows; nothing: the turn did not end.
  std::optional<bool> say(const std::vector<int64_t>& turn) {
    models::Next last = models::Next::kGoesOn;
    for (const int64_t token : turn) {
      tokens_.push_back(token);
      sampled_.push_back(true);
      last = turns_.judge(0, tokens_);
    }
    if (last != models::Next::kPauses) return std::nullopt;
    std::vector<Turns::Decision> decisions;
    while (decisions.empty()) {
      turns_.wait();
      decisions = turns_.decide();
    }
    const std::vector<int64_t>& given = decisions.at(0).given;
    tokens_.insert(tokens_.end(), given.begin(), given.end());
    sampled_.resize(tokens_.size(), false);
    return !decisions.at(0).ends;
  }

  const std::vector<int64_t>& tokens() const { return tokens_; }
  const std::vector<bool>& sampled() const { return sampled_; }

 private:
  const engine::Group group_ = prompt_group(0, 0, "");
  Turns turns_;
  std::vector<int64_t> tokens_;
  std::vector<bool> sampled_;
};

}  // namespace sluice::nodes::testing
