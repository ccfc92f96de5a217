#pragma once

#include <optional>
#include <string>

#include "engine/contract/params/param_set.h"
#include "engine/contract/params/scheduled_number.h"

namespace sluice::engine {

/// The keys that every schedule has: that of a learning rate, which stands in its optimizer's table, and those of other numbers,
/// which are tables of their own.
struct ScheduleKeys {
  ScheduleShape schedule = ScheduleShape::kConstant;
  double warmup = 0;  // iterations, or below 1 a share of the run
  double decay = 0;   // as warmup
  DecayShape decay_shape = DecayShape::kCosine;

  /// `run`: the iterations of the run, of which shares are taken. `within`: those in which it gets to its end.
  ValueSchedule schedule_of(double from, double to, int64_t run, int64_t within) const;
};

/// A share of the run, and so another number of iterations where the run has others.
bool is_share_of_run(double given);

/// Declares them.
template <class P>
void describe_schedule(ParamSet<P>& set) {
  set.param("schedule", &P::schedule)
      .doc("how it goes on after the warm-up: constant; linear or cosine to its end; wsd: constant, and to its end at last");
  set.param("warmup", &P::warmup).at_least(0).unit("iterations").doc("it rises from 0 for so long; below 1: a share of the run");
  set.param("decay", &P::decay)
      .at_least(0)
      .unit("iterations")
      .doc("of wsd: the last iterations, in which it goes to its end; below 1: a share of the run");
  set.param("decay_shape", &P::decay_shape).doc("of wsd: how it goes there");
}

/// Of whom problems of a schedule tell.
struct ScheduleOwner {
  std::string name;         // "model 'actor'"
  std::string number;       // what is reached after the warm-up: "learning_rate"
  const Value& written;     // the table that has the keys
  int64_t within = 0;       // the iterations in which it gets to its end; 0: not known
  std::string within_text;  // "the run has 5 iterations"
};

/// Reports what is wrong with the keys, each in its line.
void check_schedule(const ScheduleOwner& owner, const ScheduleKeys& keys, const ValueSchedule& schedule, Problems& problems);

/// What a scheduled parameter takes in place of a number:
///
///   kl_coefficient = { from = 0.1, to = 0.01, schedule = "cosine", over = 200 }
///
/// `schedule` is "linear" unless it is written.
struct ScheduleTable : ScheduleKeys {
  ScheduleTable() { schedule = ScheduleShape::kLinear; }

  double from = 0;
  std::optional<double> to;
  std::optional<double> over;  // as warmup; unset: the run
};

/// What was written for a scheduled parameter, in a run of so many iterations; nothing where it is neither a number nor such a
/// table.
std::optional<ScheduledNumber> scheduled_number(const Value& written, int64_t iterations, const KnownNames& known);

/// The keys of such a table, whose numbers have the bounds of `number`.
ParamSet<ScheduleTable> schedule_table(const ParamInfo& number);

}  // namespace sluice::engine
