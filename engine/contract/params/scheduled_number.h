#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace sluice::engine {

/// How a number goes on after its warm-up.
enum class ScheduleShape {
  kConstant,
  kLinear,  // straight to where it ends
  kCosine,  // half a cosine to it
  kWsd,     // warm-up, stable, decay: constant, and at last to it
};
constexpr std::array<std::pair<ScheduleShape, const char*>, 4> enum_names(ScheduleShape) {
  return {{{ScheduleShape::kConstant, "constant"},
           {ScheduleShape::kLinear, "linear"},
           {ScheduleShape::kCosine, "cosine"},
           {ScheduleShape::kWsd, "wsd"}}};
}

/// Of wsd: half a cosine, a straight line, or 1 - sqrt(progress) (Haegele et al. 2024).
enum class DecayShape { kCosine, kLinear, kSqrt };
constexpr std::array<std::pair<DecayShape, const char*>, 3> enum_names(DecayShape) {
  return {{{DecayShape::kCosine, "cosine"}, {DecayShape::kLinear, "linear"}, {DecayShape::kSqrt, "1-sqrt"}}};
}

/// A number for each iteration of a run, such as a learning rate: a pure function of the iteration, so that results do not depend
/// on timing, lag or ranks, and a run that goes on needs nothing but the number of its iteration.
///
/// The numbers are those of the schedulers of transformers at a step of the same number: get_constant_schedule_with_warmup,
/// get_linear_schedule_with_warmup (with another end than 0: get_polynomial_decay_schedule_with_warmup of power 1),
/// get_cosine_with_min_lr_schedule_with_warmup and get_wsd_schedule (Hu et al. 2024, MiniCPM, section 4).
struct ValueSchedule {
  ScheduleShape shape = ScheduleShape::kConstant;
  double from = 0;         // what it is after its warm-up
  double to = 0;           // where it ends, unless it is constant; above or below `from`
  int64_t iterations = 0;  // in which it gets there, with its warm-up; from then on it stays
  int64_t warmup = 0;      // iterations; the first has 0, with wsd `to`
  int64_t decay = 0;       // iterations of wsd's decay, the last ones
  DecayShape decay_shape = DecayShape::kCosine;

  /// Always between lowest() and highest(). Some iterations have the one, and some may have the other.
  double at(int64_t iteration) const;
  double lowest() const;
  double highest() const;
  bool changes() const { return lowest() != highest(); }

  /// "2e-04, warm-up of 3 iterations, cosine to 2e-05"; empty where it never changes.
  std::string text() const;

  bool operator==(const ValueSchedule&) const = default;
};

/// A number of iterations as people give it, of a run with `iterations`: below 1 a share of them, rounded up; else itself.
int64_t iterations_of(double given, int64_t iterations);

/// A parameter that is a number, or a schedule of it: `kl_coefficient = 0.1`, or `{ from = 0.1, to = 0.01 }`.
class ScheduledNumber {
 public:
  ScheduledNumber(double value = 0) : schedule_{.from = value} {}  // a number is one, as in a pipeline file

  /// `written`: the table, as TOML. `follows_run`: its numbers depend on how many iterations the run has.
  ScheduledNumber(const ValueSchedule& schedule, std::string written, bool follows_run)
      : schedule_(schedule), written_(std::move(written)), follows_run_(follows_run) {}

  /// As ValueSchedule::text(), and in how many iterations where it does not follow the run.
  std::string text() const;

  double at(int64_t iteration) const { return schedule_.at(iteration); }
  double lowest() const { return schedule_.lowest(); }
  double highest() const { return schedule_.highest(); }
  bool changes() const { return schedule_.changes(); }

  /// True where it is this number in all iterations.
  bool is(double number) const { return lowest() == number && highest() == number; }

  const ValueSchedule& schedule() const { return schedule_; }
  bool follows_run() const { return follows_run_; }

  /// As TOML.
  std::string written() const;

  /// Whether all iterations have the same numbers.
  bool operator==(const ScheduledNumber& other) const { return schedule_ == other.schedule_; }

 private:
  ValueSchedule schedule_;
  std::string written_;  // empty: a number
  bool follows_run_ = false;
};

/// A scheduled parameter of a node, with the name that its contract gives it.
struct NamedSchedule {
  std::string key;     // "kl_coefficient"; of a component "objective.kl_coefficient"
  std::string metric;  // what the engine records in its name where it changes; empty: nothing
  ScheduledNumber number;
};

}  // namespace sluice::engine
