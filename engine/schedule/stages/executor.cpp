#include "engine/schedule/stages/executor.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

bool goes_later(const Work& a, const Work& b) {
  return a.node != b.node ? a.node < b.node : a.packet.sequence > b.packet.sequence;
}

}  // namespace

Stepper* Steppers::next() {
  const auto ready = std::ranges::find_if(all_, &Stepper::ready);
  if (ready == all_.end()) return nullptr;
  std::rotate(ready, ready + 1, all_.end());
  return all_.back();
}

void WorkQueue::push(Work&& work) {
  heap_.push_back(std::move(work));
  if (heap_.size() > 1) std::ranges::push_heap(heap_, goes_later);
}

std::optional<Work> WorkQueue::pop() {
  if (heap_.empty()) return std::nullopt;
  std::ranges::pop_heap(heap_, goes_later);
  std::optional<Work> work(std::move(heap_.back()));
  heap_.pop_back();
  return work;
}

}  // namespace sluice::engine
