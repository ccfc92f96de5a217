#include "nodes/models/optimizer_params.h"

#include <string>
#include <variant>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

using engine::ScheduleShape;

/// What a learning rate has beside the keys of every schedule.
class MinimumCheck {
 public:
  MinimumCheck(const std::string& model, const engine::Value& written, const OptimizerParams& params, Problems& problems)
      : model_(model), written_(written), params_(params), problems_(problems) {}

  void run() {
    check_value();
    check_effect();
  }

 private:
  // Somebody who takes it for a learning rate gets one that is next to nothing: nobody means less than a thousandth.
  void check_value() {
    if (params_.minimum == 0 || params_.minimum >= 0.001) return;
    report("out-of-range",
           "minimum of model '" + model_ + "'" + " is a share of learning_rate: the learning rate would end at " +
               real_text(params_.minimum * params_.learning_rate),
           "minimum = 0.1 ends at a tenth of learning_rate, minimum = 0 at nothing");
  }

  // A default that is written down, as in an effective pipeline, is no contradiction.
  void check_effect() {
    if (params_.schedule != ScheduleShape::kConstant || params_.minimum == 0) return;
    report("setting-without-effect",
           "minimum of model '" + model_ + "' has no effect: with schedule = \"constant\" the learning rate never falls",
           "remove minimum, or set another schedule");
  }

  void report(const char* kind, std::string message, std::string help) {
    const auto* table = std::get_if<engine::Table>(&written_.data);
    const engine::Entry* entry = table == nullptr ? nullptr : table->find("minimum");
    problems_.push_back({.kind = kind,
                         .where = entry != nullptr ? entry->value.where : written_.where,
                         .message = std::move(message),
                         .caret = {},
                         .notes = {},
                         .help = std::move(help)});
  }

  const std::string& model_;
  const engine::Value& written_;
  const OptimizerParams& params_;
  Problems& problems_;
};

// The element of `groups` at this place, or its key; the optimizer's table where it was not written in a file.
SourceSpan place_of_group(const engine::Value& written, size_t index, const char* key) {
  const auto* table = std::get_if<engine::Table>(&written.data);
  const engine::Entry* groups = table == nullptr ? nullptr : table->find("groups");
  const auto* array = groups == nullptr ? nullptr : std::get_if<engine::Array>(&groups->value.data);
  if (array == nullptr || index >= array->size()) return written.where;
  const auto* group = std::get_if<engine::Table>(&(*array)[index].data);
  const engine::Entry* entry = group == nullptr ? nullptr : group->find(key);
  return entry == nullptr ? (*array)[index].where : entry->value.where;
}

}  // namespace

models::AdamWOptions OptimizerParams::options() const {
  models::AdamWOptions options{.learning_rate = learning_rate,
                               .beta1 = beta1,
                               .beta2 = beta2,
                               .eps = epsilon,
                               .weight_decay = weight_decay,
                               .clip_grad_norm = clip_grad_norm};
  for (const OptimizerGroupParams& group : groups)
    options.groups.push_back(
        {.match = group.match, .learning_rate_scale = group.learning_rate_scale, .weight_decay = group.weight_decay});
  return options;
}

engine::ValueSchedule OptimizerParams::learning_rate_of(int64_t iterations) const {
  const double end = schedule == ScheduleShape::kConstant ? 0 : minimum * learning_rate;
  return schedule_of(learning_rate, end, iterations, iterations);
}

bool OptimizerParams::follows_iterations() const {
  return schedule != ScheduleShape::kConstant || engine::is_share_of_run(warmup);
}

void check_groups(const engine::Value& written, const OptimizerParams& params, const std::vector<std::string>& names,
                  Problems& problems) {
  const std::vector<models::WeightGroupOptions> groups = params.options().groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].learning_rate_scale == 1 && !groups[i].weight_decay) {
      problems.push_back({.kind = "setting-without-effect",
                          .where = place_of_group(written, i, "match"),
                          .message = "the group of " + sluice::quoted(groups[i].match) + " is trained as all other weights are",
                          .caret = {},
                          .notes = {},
                          .help = "add learning_rate_scale or weight_decay, or remove the group"});
    }
    try {
      models::check_group(names, groups, i);
    } catch (const UserError& error) {
      Problem problem = error.problems().front();
      problem.kind = "setting-unusable";
      problem.where = place_of_group(written, i, "match");
      problems.push_back(std::move(problem));
    }
  }
}

engine::ParamSet<OptimizerParams> optimizer_params() {
  using P = OptimizerParams;
  engine::ParamSet<P> set;
  set.param("type", &P::type).doc("decoupled weight decay, moments in float32");
  set.param("learning_rate", &P::learning_rate).required().at_least(0).doc("step size; where it changes, the highest");
  engine::describe_schedule(set);
  set.param("minimum", &P::minimum).between(0, 1).doc("where the learning rate ends, as a share of learning_rate");
  set.param("beta1", &P::beta1).between(0, 0.999999).doc("decay of the mean of the gradient");
  set.param("beta2", &P::beta2).between(0, 0.999999).doc("decay of the mean of its square");
  set.param("epsilon", &P::epsilon).above(0).doc("added to the root of the mean square");
  set.param("weight_decay", &P::weight_decay)
      .at_least(0)
      .doc("share of a weight, times the learning rate, taken off at each step");
  set.param("clip_grad_norm", &P::clip_grad_norm).at_least(0).doc("largest norm of all gradients together; 0 turns clipping off");
  engine::ParamSet<OptimizerGroupParams> group;
  group.param("match", &OptimizerGroupParams::match)
      .required()
      .doc("pattern of the names of weights: `*` any text, dots too, `?` one character; the first group that matches counts");
  group.param("learning_rate_scale", &OptimizerGroupParams::learning_rate_scale)
      .at_least(0)
      .doc("their learning rate, as a share or a multiple of that of the others");
  group.param("weight_decay", &OptimizerGroupParams::weight_decay)
      .at_least(0)
      .doc("of all of them, norms and biases too; unset: as without the group");
  set.tables("groups", &P::groups, group).doc("weights that are trained otherwise than the rest, by their names");
  return set;
}

void forget_unused(OptimizerParams& params, const engine::Value& written) {
  const auto* table = std::get_if<engine::Table>(&written.data);
  const auto is_written = [&](const char* key) { return table != nullptr && table->find(key) != nullptr; };
  const OptimizerParams defaults;
  if (params.schedule == ScheduleShape::kConstant && !is_written("minimum")) params.minimum = defaults.minimum;
  if (params.schedule == ScheduleShape::kWsd) return;
  if (!is_written("decay")) params.decay = defaults.decay;
  if (!is_written("decay_shape")) params.decay_shape = defaults.decay_shape;
}

void check_schedule(const std::string& model, const engine::Value& written, const OptimizerParams& params, int64_t iterations,
                    Problems& problems) {
  const engine::ScheduleOwner owner{.name = "model '" + model + "'",
                                    .number = "learning_rate",
                                    .written = written,
                                    .within = iterations,
                                    .within_text = "the run has " + plural(iterations, "iteration")};
  MinimumCheck(model, written, params, problems).run();
  engine::check_schedule(owner, params, params.learning_rate_of(iterations), problems);
}

}  // namespace sluice::nodes
