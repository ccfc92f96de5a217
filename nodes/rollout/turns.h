#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "models/sample/generation.h"
#include "nodes/columns/finish.h"
#include "nodes/rollout/environments/environment_calls.h"
#include "text/tokenizer/response_text.h"

namespace sluice::nodes {

/// What ends the turns of a sample, and who replies to them.
struct TurnRules {
  std::vector<std::string> stop;                   // strings that end the sample
  std::vector<std::string> turn_ends;              // strings that end a turn
  std::shared_ptr<const Environment> environment;  // null: a response is one turn
  int64_t max_turns = 0;                           // 0: any number
  int64_t max_new_tokens = 0;                      // of a sample: turns and replies together
  std::vector<int64_t> end_of_sequence;            // ids that end a turn
  engine::OutsideWork* outside = nullptr;          // hears that the environment waits; null: nobody does
  std::string node;                                // whose turns they are
};

/// Follows the texts of running samples: finds where they stop and where their turns end, has the environment asked, and says how
/// they go on. Ids are those of the generation engine. Used by one thread.
class Turns {
 public:
  Turns(TurnRules rules, const text::Tokenizer& tokenizer);

  /// Nothing ends but by its last token: there is no text to follow.
  bool idle_rules() const { return rules_.stop.empty() && rules_.environment == nullptr; }

  /// `group` is where it is until the sample ends; its prompt, and its label if it has one, are told to the environment.
  void begin(uint64_t id, const engine::Group& group, int64_t sample);

  /// The engine's question for every token that was sampled. May ask the environment.
  models::Next judge(uint64_t id, std::span<const int64_t> tokens);

  /// How a paused sample goes on.
  struct Decision {
    uint64_t id = 0;
    bool ends = false;
    std::vector<int64_t> given;  // the reply's tokens; of one that ends: what there is room for
  };

  /// Those that the environment has replied to, in any order. A reply's text is tokenised by itself, without special tokens that
  /// it does not hold; nothing that is in the context already is tokenised again. Throws UserError with turn, sample and group
  /// where the environment failed.
  std::vector<Decision> decide();

  /// Waits for: a reply. Ends when: one has come, nothing was asked, or a moment has passed, so that others on the executor get
  /// their turn.
  void wait();

  struct Summary {
    Finish finish = Finish::kLength;
    int64_t turns = 1;
    double score = 0;                      // sum of the rewards
    std::map<std::string, double> counts;  // of the replies, summed
  };

  /// Forgets the sample.
  Summary end(const models::SampleResult& result);

 private:
  struct Sample {
    const engine::Group* group = nullptr;
    int64_t index = 0;
    text::ResponseText text;
    int64_t tokens = 0;     // after the prompt
    size_t turn_begin = 0;  // of these, where the turn at hand begins
    int64_t turns = 1;
    double score = 0;
    std::map<std::string, double> counts;
    std::optional<Finish> finish;  // of a sample that paused
  };

  void ask(uint64_t id, const Sample& sample, std::span<const int64_t> turn);
  Decision decide(EnvironmentCalls::Answer answer);
  bool is_end(int64_t id) const;

  const TurnRules rules_;
  const text::Tokenizer& tokenizer_;
  std::map<uint64_t, Sample> samples_;
  std::unique_ptr<EnvironmentCalls> calls_;  // null: there is no environment
};

}  // namespace sluice::nodes
