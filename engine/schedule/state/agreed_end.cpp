#include "engine/schedule/state/agreed_end.h"

#include <utility>
#include <vector>

namespace sluice::engine {
namespace {

// Negative, since the largest is taken of what ranks contribute.
Contribution own_last(int64_t last, bool is_cut_short) {
  return {maximum_part("last iteration, negative", -static_cast<double>(last)), maximum_part("cut short", is_cut_short ? 1 : 0)};
}

int64_t smallest_last(const Contribution& of_all) { return -static_cast<int64_t>(of_all.front().top); }
bool is_cut_short(const Contribution& of_all) { return of_all.back().top > 0; }

}  // namespace

AgreedEnd::AgreedEnd(Reductions& reductions, IterationCutoff& cutoff, Tells tells)
    : reductions_(reductions), cutoff_(&cutoff), tells_(std::move(tells)) {}

void AgreedEnd::listen() {
  reductions_.on_call([self = shared_from_this()] { self->be_called(); });
}

void AgreedEnd::ask() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(asked_, true)) return;
  }
  reductions_.call();
}

void AgreedEnd::forget() {
  const std::lock_guard lock(mutex_);
  cutoff_ = nullptr;
}

// Without the lock this contributes: where it is the last to do so, take() is called at once.
void AgreedEnd::be_called() {
  int64_t last = 0;
  std::optional<std::string> because;
  {
    const std::lock_guard lock(mutex_);
    if (cutoff_ == nullptr || std::exchange(called_, true)) return;
    last = cutoff_->close();
    tells_.closed();
    if (tells_.cut_short_because) because = tells_.cut_short_because();
  }
  const Reductions::Key key = Reductions::Key::agreed_end();
  if (because && reductions_.world().rank > 0) reductions_.give(key, *because);
  reductions_.combine(key, own_last(last, because.has_value()),
                      [self = shared_from_this()](const Contribution& of_all) { self->take(of_all); });
}

void AgreedEnd::take(const Contribution& of_all) {
  const std::lock_guard lock(mutex_);
  if (cutoff_ == nullptr || of_all.empty()) return;  // the run is over, or has failed
  const int64_t last = smallest_last(of_all);
  cutoff_->lower(last);
  const std::vector<std::string> because = reductions_.take_given(Reductions::Key::agreed_end());
  tells_.agreed(last, is_cut_short(of_all), because.empty() ? std::string() : because.front());
}

}  // namespace sluice::engine
