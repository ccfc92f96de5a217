#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/world/outside_work.h"
#include "nodes/models/model_text.h"

namespace sluice::nodes {

/// A turn of the policy that has ended: what an environment is asked about. Texts are without special tokens, tokens are not.
struct Turn {
  std::string prompt;
  std::string label;            // the reference answer; empty where the prompts have none
  std::string transcript;       // all after the prompt so far: turns and replies, this turn last
  std::string last;             // this turn alone
  std::vector<int64_t> tokens;  // that were sampled in it, with the one that ended it
  bool ended_sequence = false;  // that one is an end of sequence; else a string ended the turn
  int64_t index = 0;            // of this turn: 0 is the sample's first
  int64_t iteration = 0;
  int64_t group = 0;      // of the iteration
  int64_t sample = 0;     // of the group; the greedy baseline, if there is one, is that after the last
  std::string node = {};  // in whose sampling it ended, for messages
  // For who waits for a process or a server, with a limit of its own: go_on() again and again tells the run that this is no
  // stall, and throws where nobody needs the reply any more.
  engine::OutsideWait wait = {};
};

/// What an environment says to a turn.
struct Reply {
  std::string text;              // goes into the context after the turn; not an action of the policy
  bool done = false;             // the sample ends with the turn, and `text` counts for nothing
  std::optional<double> reward;  // finite; a sample's environment_score is their sum
  // By the names of metrics that the environment's contract declares, as means: a metric is the mean over samples of the sum over
  // their turns.
  std::map<std::string, double> counts = {};
};

/// What a policy acts in, turn by turn: a tool, a game, a user that is played. A component of `generate`:
///
///   environment = { type = "calculator", open = "(", close = ")" }
///
/// A reply is a function of the turn alone, so that a run can be repeated: any call may be answered by any thread, and the
/// calls of different samples come in any order. The calls of one sample come one after the other. What an environment draws at
/// random it draws from (iteration, group, sample, index). It is made when a pipeline is checked, so what is dear, such as a
/// process, is started by the first call.
class Environment {
 public:
  static constexpr const char* kComponent = "environment";

  virtual ~Environment() = default;

  /// The environment for the turns of one model, where it depends on that: on its tokenizer or its chat template. Null: it does
  /// not, and is asked itself. Called once, when a run starts, so what is dear may begin here. Throws UserError.
  virtual std::shared_ptr<const Environment> for_model(std::shared_ptr<const ModelText>) const { return nullptr; }

  /// May block, and is called by threads of `generate`, never by an executor's: other samples go on meanwhile. It must come back
  /// in bounded time, by a limit of its own: a run that ends waits for the calls that are under way. What it throws ends the run,
  /// and is told with turn, sample and group in front; what turn.wait throws it passes on. No call begins after that.
  virtual Reply reply(const Turn& turn) const = 0;

  /// Strings that end a turn in this environment, beside those of `turn_ends`. An end of sequence always does.
  virtual std::vector<std::string> turn_ends() const { return {}; }

  /// How many calls of reply() may be under way at a time.
  virtual int64_t most_calls() const { return 1; }
};

}  // namespace sluice::nodes
