#include "nodes/models/optimizer_params.h"

#include <cmath>
#include <string>
#include <variant>

#include "base/strings.h"

namespace sluice::nodes {
namespace {

using models::LearningRateShape;

bool is_share(double given) { return given > 0 && given < 1; }

/// The schedule of one optimizer while it is checked.
class ScheduleCheck {
 public:
  ScheduleCheck(const std::string& model, const engine::Value& written, const OptimizerParams& params, int64_t iterations,
                Problems& problems)
      : model_(model), written_(written), params_(params), iterations_(iterations), problems_(problems) {}

  void run() {
    check_count("warmup", params_.warmup);
    check_count("decay", params_.decay);
    check_minimum();
    check_effect();
    check_decay();
    if (iterations_ > 0) check_room();
  }

 private:
  const engine::Entry* find(const char* key) const {
    const auto* table = std::get_if<engine::Table>(&written_.data);
    return table == nullptr ? nullptr : table->find(key);
  }

  void report(const char* kind, const char* key, std::string message, std::string help, Severity severity = Severity::kError) {
    const engine::Entry* entry = find(key);
    problems_.push_back({.kind = kind,
                         .where = entry != nullptr ? entry->value.where : written_.where,
                         .message = std::move(message),
                         .caret = {},
                         .notes = {},
                         .help = std::move(help),
                         .severity = severity});
  }

  std::string of_model(const char* key) const { return std::string(key) + " of model '" + model_ + "'"; }

  void check_count(const char* key, double given) {
    if (given < 1 || given == std::trunc(given)) return;
    report("out-of-range", key, of_model(key) + " must be a whole number of iterations, or a share of them below 1",
           std::string(key) + " = " + std::to_string(std::llround(given)));
  }

  // Somebody who takes it for a learning rate gets one that is next to nothing: nobody means less than a thousandth.
  void check_minimum() {
    if (params_.minimum == 0 || params_.minimum >= 0.001) return;
    report("out-of-range", "minimum",
           of_model("minimum") + " is a share of learning_rate: the learning rate would end at " +
               real_text(params_.minimum * params_.learning_rate),
           "minimum = 0.1 ends at a tenth of learning_rate, minimum = 0 at nothing");
  }

  // Defaults that are written down, as in an effective pipeline, are no contradiction.
  void check_effect() {
    const OptimizerParams defaults;
    const std::string why = "only with schedule = \"wsd\" is there a decay of its own";
    if (params_.schedule != LearningRateShape::kWsd && params_.decay != defaults.decay) refuse("decay", why);
    if (params_.schedule != LearningRateShape::kWsd && params_.decay_shape != defaults.decay_shape) refuse("decay_shape", why);
    if (params_.schedule == LearningRateShape::kConstant && params_.minimum != defaults.minimum)
      refuse("minimum", "with schedule = \"constant\" the learning rate never falls");
  }

  void refuse(const char* key, const std::string& why) {
    report("setting-without-effect", key, of_model(key) + " has no effect: " + why,
           std::string("remove ") + key + ", or set another schedule");
  }

  void check_decay() {
    if (params_.schedule != LearningRateShape::kWsd || params_.decay > 0) return;
    report("missing-key", "schedule", "schedule = \"wsd\" of model '" + model_ + "' needs decay",
           "add decay = 0.2: a share of the run, or a number of iterations, at its end");
  }

  void check_room() {
    const models::LearningRate rate = params_.schedule_of(iterations_);
    const std::string run = plural(iterations_, "iteration");
    if (params_.schedule == LearningRateShape::kWsd && rate.warmup + rate.decay > iterations_) {
      return report("setting-unusable", "decay",
                    "warm-up and decay of model '" + model_ + "' take " + std::to_string(rate.warmup) + " + " +
                        std::to_string(rate.decay) + " iterations, and the run has " + std::to_string(iterations_),
                    "fewer, or shares of the run: warmup = 0.05, decay = 0.2");
    }
    if (rate.warmup < iterations_) return;
    report("warmup-exceeds-run", "warmup",
           "the warm-up of model '" + model_ + "' takes " + plural(rate.warmup, "iteration") + ", and the run has " + run +
               ": learning_rate is never reached",
           is_share(params_.warmup) ? "more iterations, or warmup = 0"
                                    : "fewer iterations of warm-up, or a share of the run: warmup = 0.05",
           Severity::kWarning);
  }

  const std::string& model_;
  const engine::Value& written_;
  const OptimizerParams& params_;
  const int64_t iterations_;
  Problems& problems_;
};

}  // namespace

models::AdamWOptions OptimizerParams::options() const {
  return {.learning_rate = learning_rate,
          .beta1 = beta1,
          .beta2 = beta2,
          .eps = epsilon,
          .weight_decay = weight_decay,
          .clip_grad_norm = clip_grad_norm};
}

models::LearningRate OptimizerParams::schedule_of(int64_t iterations) const {
  return {.shape = schedule,
          .highest = learning_rate,
          .minimum = minimum,
          .iterations = iterations,
          .warmup = models::iterations_of(warmup, iterations),
          .decay = models::iterations_of(decay, iterations),
          .decay_shape = decay_shape};
}

bool OptimizerParams::follows_iterations() const { return schedule != LearningRateShape::kConstant || is_share(warmup); }

engine::ParamSet<OptimizerParams> optimizer_params() {
  using P = OptimizerParams;
  engine::ParamSet<P> set;
  set.param("type", &P::type).doc("decoupled weight decay, moments in float32");
  set.param("learning_rate", &P::learning_rate).required().at_least(0).doc("step size; where it changes, the highest");
  set.param("schedule", &P::schedule)
      .doc(
          "how the learning rate goes on after the warm-up: constant; linear or cosine down to the minimum at the end of the "
          "run; "
          "wsd: constant, and down in the last iterations");
  set.param("warmup", &P::warmup)
      .at_least(0)
      .unit("iterations")
      .doc("the learning rate rises from 0 for so long; below 1: a share of the run");
  set.param("minimum", &P::minimum).between(0, 1).doc("where the learning rate ends, as a share of learning_rate");
  set.param("decay", &P::decay)
      .at_least(0)
      .unit("iterations")
      .doc("of wsd: the last iterations, in which the learning rate falls; below 1: a share of the run");
  set.param("decay_shape", &P::decay_shape).doc("of wsd: how it falls");
  set.param("beta1", &P::beta1).between(0, 0.999999).doc("decay of the mean of the gradient");
  set.param("beta2", &P::beta2).between(0, 0.999999).doc("decay of the mean of its square");
  set.param("epsilon", &P::epsilon).above(0).doc("added to the root of the mean square");
  set.param("weight_decay", &P::weight_decay)
      .at_least(0)
      .doc("share of a weight, times the learning rate, taken off at each step");
  set.param("clip_grad_norm", &P::clip_grad_norm).at_least(0).doc("largest norm of all gradients together; 0 turns clipping off");
  return set;
}

void forget_unused(OptimizerParams& params, const engine::Value& written) {
  const auto* table = std::get_if<engine::Table>(&written.data);
  const auto is_written = [&](const char* key) { return table != nullptr && table->find(key) != nullptr; };
  const OptimizerParams defaults;
  if (params.schedule == LearningRateShape::kConstant && !is_written("minimum")) params.minimum = defaults.minimum;
  if (params.schedule == LearningRateShape::kWsd) return;
  if (!is_written("decay")) params.decay = defaults.decay;
  if (!is_written("decay_shape")) params.decay_shape = defaults.decay_shape;
}

void check_schedule(const std::string& model, const engine::Value& written, const OptimizerParams& params, int64_t iterations,
                    Problems& problems) {
  ScheduleCheck(model, written, params, iterations, problems).run();
}

}  // namespace sluice::nodes
