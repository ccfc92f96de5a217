#include "engine/contract/params/schedule_params.h"

#include <cmath>

#include "base/text/strings.h"

namespace sluice::engine {
namespace {

/// One schedule while it is checked.
class ScheduleCheck {
 public:
  ScheduleCheck(const ScheduleOwner& owner, const ScheduleKeys& keys, const ValueSchedule& schedule, Problems& problems)
      : owner_(owner), keys_(keys), schedule_(schedule), problems_(problems) {}

  void run() {
    check_count("warmup", keys_.warmup);
    check_count("decay", keys_.decay);
    check_effect();
    check_decay();
    if (owner_.within > 0) check_room();
  }

  void check_count(const char* key, double given) {
    if (given < 1 || given == std::trunc(given)) return;
    report("out-of-range", key, of_owner(key) + " must be a whole number of iterations, or a share of them below 1",
           std::string(key) + " = " + std::to_string(std::llround(given)));
  }

  void refuse(const char* key, const std::string& why) {
    report("setting-without-effect", key, of_owner(key) + " has no effect: " + why,
           std::string("remove ") + key + ", or set another schedule");
  }

  void report(const char* kind, const char* key, std::string message, std::string help, Severity severity = Severity::kError) {
    const auto* table = std::get_if<Table>(&owner_.written.data);
    const Entry* entry = table == nullptr ? nullptr : table->find(key);
    problems_.push_back({.kind = kind,
                         .where = entry != nullptr ? entry->value.where : owner_.written.where,
                         .message = std::move(message),
                         .caret = {},
                         .notes = {},
                         .help = std::move(help),
                         .severity = severity});
  }

 private:
  std::string of_owner(const std::string& key) const { return key + " of " + owner_.name; }

  // Defaults that are written down, as in an effective pipeline, are no contradiction.
  void check_effect() {
    if (keys_.schedule == ScheduleShape::kWsd) return;
    const ScheduleKeys defaults;
    const std::string why = "only with schedule = \"wsd\" is there a decay of its own";
    if (keys_.decay != defaults.decay) refuse("decay", why);
    if (keys_.decay_shape != defaults.decay_shape) refuse("decay_shape", why);
  }

  void check_decay() {
    if (keys_.schedule != ScheduleShape::kWsd || keys_.decay > 0) return;
    report("missing-key", "schedule", "schedule = \"wsd\" of " + owner_.name + " needs decay",
           "add decay = 0.2: a share of the run, or a number of iterations, at its end");
  }

  void check_room() {
    const int64_t warmup = schedule_.warmup, decay = schedule_.decay;
    if (keys_.schedule == ScheduleShape::kWsd && warmup + decay > owner_.within) {
      return report("setting-unusable", "decay",
                    "warm-up and decay of " + owner_.name + " take " + std::to_string(warmup) + " + " + std::to_string(decay) +
                        " iterations, and " + owner_.within_text,
                    "fewer, or shares of the run: warmup = 0.05, decay = 0.2");
    }
    if (warmup < owner_.within) return;
    report("warmup-exceeds-run", "warmup",
           "the warm-up of " + owner_.name + " takes " + plural(warmup, "iteration") + ", and " + owner_.within_text + ": " +
               owner_.number + " is never reached",
           is_share_of_run(keys_.warmup) ? "more iterations, or warmup = 0"
                                         : "fewer iterations of warm-up, or a share of the run: warmup = 0.05",
           Severity::kWarning);
  }

  const ScheduleOwner& owner_;
  const ScheduleKeys& keys_;
  const ValueSchedule& schedule_;
  Problems& problems_;
};

std::string text_of_table(const ScheduleTable& table, const ParamInfo& number) {
  const ScheduleTable defaults;
  std::vector<ParamText> parts = schedule_table(number).erased().texts(&table);
  std::erase_if(parts, [&](const ParamText& part) {
    if (part.name == "warmup") return table.warmup == defaults.warmup;
    if (part.name == "decay") return table.decay == defaults.decay;
    return part.name == "decay_shape" && table.decay_shape == defaults.decay_shape;
  });
  return detail::inline_text(parts);
}

// What is wrong with the ends: `to` where it is needed and nowhere else, and a warm-up from 0 where 0 is allowed.
void check_ends(const ScheduleTable& table, const ParamInfo& info, ScheduleCheck& check) {
  const bool constant = table.schedule == ScheduleShape::kConstant;
  if (!constant && !table.to)
    check.report("missing-key", "from", info.name + " needs to, the number that it ends with",
                 "add to = ..., or schedule = \"constant\"");
  if (constant && table.to) check.refuse("to", "with schedule = \"constant\" it never changes");
  if (table.over) check.check_count("over", *table.over);
  if (constant && table.over) check.refuse("over", "with schedule = \"constant\" it never changes");
  if (table.over && *table.over == 0)
    check.report("out-of-range", "over", "over of " + info.name + " must be at least one iteration",
                 "remove over: the whole run");
  const bool allows_zero = !info.minimum || *info.minimum < 0 || (*info.minimum == 0 && !info.minimum_excluded);
  if (table.warmup > 0 && table.schedule != ScheduleShape::kWsd && !allows_zero) {
    ParamInfo number = info;
    number.kind = ParamKind::kReal;
    check.report("out-of-range", "warmup", "the warm-up of " + info.name + " begins at 0, and it must be " + expectation(number),
                 "remove warmup, and let from be the number that it begins with");
  }
}

}  // namespace

bool is_share_of_run(double given) { return given > 0 && given < 1; }

ValueSchedule ScheduleKeys::schedule_of(double from, double to, int64_t run, int64_t within) const {
  return {.shape = schedule,
          .from = from,
          .to = to,
          .iterations = within,
          .warmup = iterations_of(warmup, run),
          .decay = iterations_of(decay, run),
          .decay_shape = decay_shape};
}

void check_schedule(const ScheduleOwner& owner, const ScheduleKeys& keys, const ValueSchedule& schedule, Problems& problems) {
  ScheduleCheck(owner, keys, schedule, problems).run();
}

ParamSet<ScheduleTable> schedule_table(const ParamInfo& number) {
  using P = ScheduleTable;
  const auto bounded = [&](ParamBuilder builder) {
    if (number.minimum && number.minimum_excluded) builder.above(*number.minimum);
    if (number.minimum && !number.minimum_excluded) builder.at_least(*number.minimum);
    if (number.maximum) builder.at_most(*number.maximum);
    return builder;
  };
  ParamSet<P> set;
  bounded(set.param("from", &P::from)).required().doc("the number after the warm-up");
  bounded(set.param("to", &P::to)).doc("the number that it ends with, above or below; needed unless the schedule is constant");
  describe_schedule(set);
  set.param("over", &P::over)
      .at_least(0)
      .unit("iterations")
      .doc("it gets to its end in so many, warm-up included, and stays there; below 1: a share of the run; unset: the run");
  return set;
}

std::vector<NamedSchedule> ParamTable::schedules(const void* params) const {
  std::vector<NamedSchedule> all;
  for (const Param& param : params_) {
    if (!param.schedules) continue;
    for (NamedSchedule& one : param.schedules(params)) {
      const bool of_component = !one.key.empty();
      if (!of_component) one.metric = param.info.metric;
      one.key = of_component ? param.info.name + "." + one.key : param.info.name;
      all.push_back(std::move(one));
    }
  }
  return all;
}

namespace detail {

bool read_scheduled(const Value& value, ScheduledNumber& out, BindContext& context, const ParamInfo& info) {
  const auto* table = std::get_if<Table>(&value.data);
  if (table == nullptr) {
    double number = 0;
    if (!read_real(value, number, context, info)) return false;
    out = number;
    return true;
  }
  const size_t before = context.problems.size();
  ScheduleTable read;
  BindContext inside{context.known, context.problems, info.name + " in " + context.owner, {}, context.iterations};
  schedule_table(info).erased().bind(&read, *table, inside);
  if (context.problems.size() > before) return false;

  const int64_t run = context.iterations, within = read.over ? iterations_of(*read.over, run) : run;
  const bool constant = read.schedule == ScheduleShape::kConstant;
  const ValueSchedule schedule = read.schedule_of(read.from, constant ? 0 : read.to.value_or(read.from), run, within);
  const std::string within_text = read.over ? "over is " + std::to_string(within) : "the run has " + plural(within, "iteration");
  const ScheduleOwner owner{.name = info.name, .number = "from", .written = value, .within = within, .within_text = within_text};
  ScheduleCheck check(owner, read, schedule, context.problems);
  check_ends(read, info, check);
  check.run();
  const bool follows_run = (!constant && !read.over) || is_share_of_run(read.over.value_or(0)) || is_share_of_run(read.warmup) ||
                           is_share_of_run(read.decay);
  out = ScheduledNumber(schedule, text_of_table(read, info), follows_run);
  return !has_errors({context.problems.begin() + static_cast<ptrdiff_t>(before), context.problems.end()});
}

}  // namespace detail

std::optional<ScheduledNumber> scheduled_number(const Value& written, int64_t iterations, const KnownNames& known) {
  Problems problems;
  BindContext context{known, problems, "what was written", {}, iterations};
  ScheduledNumber number;
  if (!detail::read_scheduled(written, number, context, {.name = "the number"})) return std::nullopt;
  return number;
}

}  // namespace sluice::engine
