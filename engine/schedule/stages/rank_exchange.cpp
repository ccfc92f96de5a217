#include "engine/schedule/stages/rank_exchange.h"

#include <algorithm>

namespace sluice::engine {
namespace {

// What a rank adds under this name: 1 where it has gradients of the model, else 0.
std::string gradients_of(const std::string& model) { return "gradients of " + model; }

// What rank 0 adds under this name to the end of an iteration after which the run is saved.
constexpr const char* kSaved = "saved";

}  // namespace

RankExchange::RankExchange(RunState& state, StageHost& host, const Workload::Models& models)
    : state_(state), host_(host), has_totals_(!host.totals().empty()), has_files_(!host.files().empty()) {
  for (const std::string& model : host.updated_models()) {
    if (const auto found = models.find(model); found != models.end()) trained_.push_back(*found);
  }
}

void RankExchange::come(int64_t meeting) {
  if (state_.world.owners() == 1) return;
  meeting_ = Meeting{.executor = host_.executor(), .node = host_.index(), .number = meeting, .came_ns = state_.clock.now_ns()};
}

void RankExchange::go_on_from_meeting(const Iteration& iteration) {
  if (!meeting_) return;
  meeting_->iteration = iteration.index;
  meeting_->went_on_ns = state_.clock.now_ns();
  state_.activity.met(*std::exchange(meeting_, std::nullopt));
}

// Whichever of the two comes second goes on: the end of the call, or this.
RankExchange::GoOn RankExchange::second_half(const GoOn& go_on) {
  exchanging_ = 0;
  return [this, go_on] {
    if (is_other_half_done()) go_on();
  };
}

Contribution RankExchange::contribution(const Iteration& iteration, bool at_end) {
  Contribution mine = host_.totals().contribution();
  for (const auto& [name, model] : trained_) mine.push_back(sum_part(gradients_of(name), model->add_up_slots() ? 1 : 0));
  if (at_end && host_.announces_save(iteration)) mine.push_back(sum_part(kSaved, 1));
  return mine;
}

bool RankExchange::combine(const Iteration& iteration, int64_t point, int64_t meeting, const GoOn& go_on) {
  if (!adds()) return true;
  const bool at_end = point == Reductions::Key::kEnd;
  Contribution mine = contribution(iteration, at_end);
  const Reductions::Key key{.iteration = iteration.index, .node = host_.index(), .point = point};
  if (has_files_ && at_end && state_.world.rank > 0) state_.reductions.give(key, host_.files().take());
  const GoOn done = second_half(go_on);
  come(meeting);
  state_.reductions.combine(key, std::move(mine), [this, done](Contribution of_all) { take_sums(std::move(of_all), done); });
  if (!is_other_half_done()) return false;
  if (!state_.is_abandoned(iteration.index)) return true;
  go_on();  // without the sums, to be dropped
  return false;
}

// Ranks learn from the totals whether there are gradients, so all of them add them up or none does.
void RankExchange::take_sums(Contribution of_all, const GoOn& done) {
  saves_ = std::ranges::find(of_all, kSaved, &Part::name) != of_all.end();
  const Contribution told = trained_.empty() ? Contribution() : of_all;
  host_.totals().set_combined(std::move(of_all));
  add_up_gradients(told, 0, done);
}

// Of one model after the other, from this one on. A run that is over tells nothing.
void RankExchange::add_up_gradients(const Contribution& of_all, size_t model, const GoOn& done) {
  if (model == trained_.size()) return done();
  const auto& [name, trained] = trained_[model];
  const auto part = std::ranges::find(of_all, gradients_of(name), &Part::name);
  const auto next = [this, of_all, model, done] { add_up_gradients(of_all, model + 1, done); };
  if (part == of_all.end() || part->numbers.sum.value() == 0) return next();
  trained->add_up_ranks(next);
}

bool RankExchange::bring_weights(int64_t meeting, const GoOn& go_on) {
  if (trained_.empty()) return true;
  come(meeting);
  bring_weights_of(0, second_half(go_on));
  return is_other_half_done();
}

void RankExchange::bring_weights_of(size_t model, const GoOn& done) {
  if (model == trained_.size()) return done();
  trained_[model].second->bring_weights([this, model, done] { bring_weights_of(model + 1, done); });
}

void RankExchange::follow() {
  for (const auto& [name, model] : trained_) model->follow();
}

void RankExchange::take_lines(const Iteration& iteration) {
  if (!has_files_ || state_.world.rank != 0) return;
  const Reductions::Key key{.iteration = iteration.index, .node = host_.index(), .point = Reductions::Key::kEnd};
  for (const std::string& lines : state_.reductions.take_given(key)) host_.files().append(lines);
}

}  // namespace sluice::engine
