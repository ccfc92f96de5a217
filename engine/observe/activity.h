#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/observe/clock.h"
#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// Seconds since the last take().
struct BusySeconds {
  double rollout = 0;
  double train = 0;
  double overlap = 0;                // rollout and training at once
  std::vector<double> of_executors;  // by index of Plan::executors
  std::vector<double> of_nodes;      // by index of Plan::nodes
};

/// What every executor does at the moment, for how long each was busy, and with what. begin(), end() and go_on() are called by
/// the thread of the executor (or of the simulation) and look at the clock once each, which is what they cost; the rest is
/// thread-safe.
class Activity {
 public:
  /// What an executor is at.
  struct Current {
    int node = -1;  // -1: idle
    int64_t since_ns = 0;
    int64_t iteration = -1;
    int64_t micro_batch = -1;
  };

  /// `observers` and `clock` outlive the activity.
  Activity(const Plan& plan, const Clock& clock, std::vector<WorkObserver*> observers);

  /// The executor turns to a node. The second form also says with what, for whoever looks while the work goes on.
  void begin(int executor, int node);
  void begin_packet(int executor, int64_t iteration, int64_t micro_batch);

  /// The code of another node runs on its behalf, as the source's in a step of the rollout: who is shown, not who is charged.
  void show(int executor, int node);

  /// What begins next followed the last work at once: it begins when that ended, without a look at the clock.
  void go_on(int executor);

  /// The executor is done. What is told to the observers and counted: `slice`, with node, executor and times filled in.
  void end(int executor, Slice&& slice);

  /// It is done, and it was nothing worth telling: a packet was only passed on or put aside.
  void end_unseen(int executor);

  /// A micro-batch leaves the intake.
  void packed(int64_t iteration, const Layout& layout) {
    for (WorkObserver* observer : observers_) observer->packed(iteration, layout);
  }

  /// All ranks came to a point.
  void met(const Meeting& meeting) {
    for (WorkObserver* observer : observers_) observer->met(meeting);
  }

  /// Columns of a micro-batch are complete.
  void wrote(const WrittenColumns& columns) {
    for (WorkObserver* observer : observers_) observer->wrote(columns);
  }

  BusySeconds take();
  Current current(int executor) const;
  double busy_seconds_of_executor(int executor) const;
  double busy_seconds_of_node(int node) const;

 private:
  enum Class { kRollout, kTrain, kOther };
  struct alignas(64) Seat {  // of an executor; written by its thread alone
    std::atomic<int> node{-1}, shown{-1};
    std::atomic<int64_t> since_ns{0}, iteration{-1}, micro_batch{-1}, busy_ns{0};
    int64_t ended_ns = 0;       // 0: what came after the last work took time of its own
    int64_t go_on_from_ns = 0;  // 0: look at the clock
  };
  struct alignas(64) Account {  // of a node; written by its executor's thread alone
    std::atomic<int64_t> busy_ns{0};
  };

  void leave(int executor, int64_t now_ns);
  void change(Class work_class, int by, int64_t now_ns);

  const Clock& clock_;
  const std::vector<WorkObserver*> observers_;
  std::vector<Class> classes_;  // by node
  std::vector<Seat> seats_;     // by executor
  std::vector<Account> accounts_;

  std::mutex mutex_;           // guards what follows
  std::array<int, 3> busy_{};  // pieces of work under way, by class
  int64_t last_change_ns_ = 0;
  std::array<int64_t, 3> class_ns_{};                         // rollout, train, both
  std::vector<int64_t> taken_executors_ns_, taken_nodes_ns_;  // what take() told already
};

}  // namespace sluice::engine
