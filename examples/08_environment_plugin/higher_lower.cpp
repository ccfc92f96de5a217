// An environment as a plugin: the policy guesses a number, and is told whether it is higher or lower.
#include <cstdlib>

#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"
#include "nodes/rollout/environments/environment.h"

namespace higher_lower {

using namespace sluice;

struct HigherLowerParams {
  int64_t most_guesses = 3;
};

/// A turn is a guess at the label. The reply to a wrong one is ">" (higher) or "<" (lower).
///
///   environment = { type = "higher_lower", most_guesses = 3 }
class HigherLower final : public nodes::Environment {
 public:
  static void describe(engine::Contract<HigherLowerParams>& c) {
    c.type("higher_lower", "tells whether the number is higher or lower than the guess");
    c.param("most_guesses", &HigherLowerParams::most_guesses).at_least(1).doc("then the game is lost");
  }

  explicit HigherLower(const HigherLowerParams& params) : params_(params) {}

  nodes::Reply reply(const nodes::Turn& turn) const override {
    const long long guess = std::atoll(turn.last.c_str()), number = std::atoll(turn.label.c_str());
    if (guess == number) return {.text = {}, .done = true, .reward = 1.0};
    if (turn.index + 1 == params_.most_guesses) return {.text = {}, .done = true, .reward = 0.0};
    return {.text = guess < number ? ">" : "<", .done = false, .reward = {}};
  }

 private:
  HigherLowerParams params_;
};

void register_environments(engine::Registry& registry) { registry.add_component<nodes::Environment, HigherLower>(); }

}  // namespace higher_lower

SLUICE_PLUGIN(higher_lower::register_environments)
