#include "engine/observe/activity.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

constexpr double kSecondsPerNs = 1e-9;

bool trains(const PlanNode& node) {
  return std::ranges::any_of(node.needs.models, [](const ModelNeed& need) { return need.use == ModelUse::kUpdates; });
}

// Only the owner's thread writes, so that a plain addition is enough.
void add(std::atomic<int64_t>& total, int64_t amount) {
  total.store(total.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

Activity::Activity(const Plan& plan, const Clock& clock, std::vector<WorkObserver*> observers)
    : clock_(clock),
      observers_(std::move(observers)),
      seats_(plan.executors.size()),
      accounts_(plan.nodes.size()),
      taken_executors_ns_(plan.executors.size()),
      taken_nodes_ns_(plan.nodes.size()) {
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool samples =
        std::ranges::any_of(plan.paths, [&](const PlanPath& path) { return path.rollout == static_cast<int>(i); });
    classes_.push_back(samples ? kRollout : trains(plan.nodes[i]) ? kTrain : kOther);
  }
}

void Activity::begin(int executor, int node) {
  Seat& seat = seats_[static_cast<size_t>(executor)];
  const int64_t go_on_from = std::exchange(seat.go_on_from_ns, 0);
  const int64_t now = go_on_from != 0 ? go_on_from : clock_.now_ns();
  seat.since_ns.store(now, std::memory_order_relaxed);
  seat.iteration.store(-1, std::memory_order_relaxed);
  seat.node.store(node, std::memory_order_relaxed);
  seat.shown.store(node, std::memory_order_release);
  change(classes_[static_cast<size_t>(node)], +1, now);
  for (WorkObserver* observer : observers_) observer->began(executor, node);
}

void Activity::begin_packet(int executor, int64_t iteration, int64_t micro_batch) {
  Seat& seat = seats_[static_cast<size_t>(executor)];
  seat.micro_batch.store(micro_batch, std::memory_order_relaxed);
  seat.iteration.store(iteration, std::memory_order_relaxed);
}

void Activity::show(int executor, int node) {
  seats_[static_cast<size_t>(executor)].shown.store(node, std::memory_order_release);
}

void Activity::go_on(int executor) {
  Seat& seat = seats_[static_cast<size_t>(executor)];
  seat.go_on_from_ns = seat.ended_ns;
}

void Activity::end(int executor, Slice&& slice) {
  Seat& seat = seats_[static_cast<size_t>(executor)];
  slice.executor = executor;
  slice.node = seat.node.load(std::memory_order_relaxed);
  slice.begin_ns = seat.since_ns.load(std::memory_order_relaxed);
  slice.end_ns = clock_.now_ns();
  leave(executor, slice.end_ns);
  if (slice.ends_iteration) seat.ended_ns = 0;  // what follows, such as the report of the iteration, is nobody's work
  for (WorkObserver* observer : observers_) observer->ended(slice);
}

void Activity::end_unseen(int executor) { leave(executor, clock_.now_ns()); }

void Activity::leave(int executor, int64_t now_ns) {
  Seat& seat = seats_[static_cast<size_t>(executor)];
  seat.ended_ns = now_ns;
  if (seat.node.load(std::memory_order_relaxed) < 0) return;  // it had ended when something failed
  const auto node = static_cast<size_t>(seat.node.load(std::memory_order_relaxed));
  const int64_t spent = now_ns - seat.since_ns.load(std::memory_order_relaxed);
  add(seat.busy_ns, spent);
  add(accounts_[node].busy_ns, spent);
  seat.node.store(-1, std::memory_order_relaxed);
  seat.shown.store(-1, std::memory_order_release);
  change(classes_[node], -1, now_ns);
  for (WorkObserver* observer : observers_) observer->left(executor);
}

// Rollout and training can only overlap when there are several executors; nothing else needs the lock.
void Activity::change(Class work_class, int by, int64_t now_ns) {
  if (work_class == kOther) return;
  const std::lock_guard lock(mutex_);
  const int64_t passed = now_ns - std::exchange(last_change_ns_, now_ns);
  if (busy_[kRollout] > 0) class_ns_[0] += passed;
  if (busy_[kTrain] > 0) class_ns_[1] += passed;
  if (busy_[kRollout] > 0 && busy_[kTrain] > 0) class_ns_[2] += passed;
  busy_[work_class] += by;
}

BusySeconds Activity::take() {
  BusySeconds seconds;
  const std::lock_guard lock(mutex_);
  seconds.rollout = static_cast<double>(class_ns_[0]) * kSecondsPerNs;
  seconds.train = static_cast<double>(class_ns_[1]) * kSecondsPerNs;
  seconds.overlap = static_cast<double>(class_ns_[2]) * kSecondsPerNs;
  class_ns_ = {};
  const auto since_taken = [](const std::atomic<int64_t>& total, int64_t& taken) {
    const int64_t now = total.load(std::memory_order_relaxed);
    return static_cast<double>(now - std::exchange(taken, now)) * kSecondsPerNs;
  };
  for (size_t i = 0; i < seats_.size(); ++i)
    seconds.of_executors.push_back(since_taken(seats_[i].busy_ns, taken_executors_ns_[i]));
  for (size_t i = 0; i < accounts_.size(); ++i) seconds.of_nodes.push_back(since_taken(accounts_[i].busy_ns, taken_nodes_ns_[i]));
  return seconds;
}

Activity::Current Activity::current(int executor) const {
  const Seat& seat = seats_[static_cast<size_t>(executor)];
  return {.node = seat.shown.load(std::memory_order_acquire),
          .since_ns = seat.since_ns.load(std::memory_order_relaxed),
          .iteration = seat.iteration.load(std::memory_order_relaxed),
          .micro_batch = seat.micro_batch.load(std::memory_order_relaxed)};
}

double Activity::busy_seconds_of_executor(int executor) const {
  return static_cast<double>(seats_[static_cast<size_t>(executor)].busy_ns.load(std::memory_order_relaxed)) * kSecondsPerNs;
}

double Activity::busy_seconds_of_node(int node) const {
  return static_cast<double>(accounts_[static_cast<size_t>(node)].busy_ns.load(std::memory_order_relaxed)) * kSecondsPerNs;
}

}  // namespace sluice::engine
