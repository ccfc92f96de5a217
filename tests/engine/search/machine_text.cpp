#include "tests/engine/search/machine_text.h"

namespace sluice::engine::testing {

std::string text_of(const Move& move) {
  const std::string which = std::to_string(move.which), tokens = std::to_string(move.tokens);
  const std::string by = move.with < 0 ? std::string() : " made by rank " + std::to_string(move.with);
  switch (move.kind) {
    case Move::Kind::kBegin:
      return "an iteration begins";
    case Move::Kind::kAdmit:
      return "a group is admitted with " + tokens + " tokens";
    case Move::Kind::kGrow:
      return "group " + which + " of those admitted grows by a token";
    case Move::Kind::kRestart:
      return "group " + which + " of those admitted restarts";
    case Move::Kind::kFinish:
      return "group " + which + " of those admitted is finished with " + tokens + " tokens";
    case Move::Kind::kProcess:
      return "step " + which + " is done with packet " + std::to_string(move.packet) + " (keeps " + std::to_string(move.passes) +
             ")";
    case Move::Kind::kLearn:
      return "the verdicts of all ranks are known";
    case Move::Kind::kTake:
    case Move::Kind::kGive:
      return "the oldest group is taken over with " + tokens + " tokens" + by;
    case Move::Kind::kLose:
      return "the rank is lost";
    case Move::Kind::kHear:
      return "rank " + which + " is known to be lost";
    case Move::Kind::kLendAgain:
    case Move::Kind::kHelpAgain:
      return "a group of a lost rank is admitted again with " + tokens + " tokens, to be" + by;
    case Move::Kind::kLend:
    case Move::Kind::kHelp:
      return "a group is admitted with " + tokens + " tokens, to be" + by;
  }
  return {};
}

std::string describe(const Machine& machine) {
  std::string text = std::to_string(machine.iterations) + " iterations of " + std::to_string(machine.groups) + " groups of " +
                     std::to_string(machine.least) + " to " + std::to_string(machine.worst) + " tokens" +
                     (machine.rollout ? " by a rollout" : "") + (machine.of_frozen_model ? " of a frozen model" : "") +
                     (machine.on_demand ? ", on demand" : "") +
                     (machine.slots > 1 ? " in " + std::to_string(machine.slots) + " slots" : "") + ", micro-batches of " +
                     std::to_string(machine.micro_batch) + (machine.own_share ? " or the path's share" : "") + ", lag " +
                     std::to_string(machine.lag);
  if (machine.measures()) text += ", measured every " + std::to_string(machine.every);
  if (machine.before_training) text += " and before training";
  if (machine.lasts > 0) text += ", with data for " + std::to_string(machine.lasts);
  for (size_t s = 0; s < machine.steps.size(); ++s) {
    const Step& step = machine.steps[s];
    text += "; step " + std::to_string(s) + " <-";
    for (const int input : step.inputs) text += " " + std::to_string(input);
    if (step.reads) text += " reads";
    if (step.barrier) text += " barrier";
    if (step.draws > 0)
      text += " filter, draws " + std::to_string(step.draws) + ", oversample " + std::to_string(step.oversample_tenths) + "/10";
    if (step.use != Use::kNone)
      text += step.use == Use::kTrains ? " trains" : step.use == Use::kPublishes ? " publishes" : " reads live weights";
  }
  return text;
}

namespace {

std::string roles_text(const Machine& machine) {
  if (machine.owners == 0) return {};
  return ", of which " + std::to_string(machine.owners) + " train and the others make groups with " +
         std::to_string(machine.making) + " tokens" + (machine.elastic ? ", and may be lost" : "");
}

}  // namespace

std::string describe(const Paths& paths) {
  std::string text;
  for (const Machine& path : paths.paths) text += (text.empty() ? "" : "\n  beside ") + describe(path);
  return text + (paths.ranks > 1 ? "\n  on " + std::to_string(paths.ranks) + " ranks" : "") + roles_text(paths.paths.front());
}

}  // namespace sluice::engine::testing
