#include "engine/schedule/agreed_end.h"

#include <utility>

namespace sluice::engine {
namespace {

// Negative, since the largest is taken of what ranks contribute.
Contribution own_last(int64_t last) {
  Part part{.name = "last iteration, negative",
            .kind = Metric::kMaximum,
            .numbers = {},
            .top = -static_cast<double>(last),
            .recorded = true};
  part.numbers.weight.add(1);
  return {std::move(part)};
}

int64_t smallest_last(const Contribution& of_all) { return -static_cast<int64_t>(of_all.front().top); }

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
  {
    const std::lock_guard lock(mutex_);
    if (cutoff_ == nullptr || std::exchange(called_, true)) return;
    last = cutoff_->close();
    tells_.closed();
  }
  reductions_.combine(Reductions::Key::agreed_end(), own_last(last),
                      [self = shared_from_this()](const Contribution& of_all) { self->take(of_all); });
}

void AgreedEnd::take(const Contribution& of_all) {
  const std::lock_guard lock(mutex_);
  if (cutoff_ == nullptr || of_all.empty()) return;  // the run is over, or has failed
  const int64_t last = smallest_last(of_all);
  cutoff_->lower(last);
  tells_.agreed(last);
}

}  // namespace sluice::engine
