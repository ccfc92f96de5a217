#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/schedule/state/packet.h"

namespace sluice::engine {

/// What a node does with a packet. Does not throw.
class Task {
 public:
  virtual ~Task() = default;
  virtual void run(Packet packet) = 0;
};

/// A packet that has reached a node.
struct Work {
  int node = 0;  // index into Plan::nodes, which is topological: higher is more downstream
  Task* task = nullptr;
  Packet packet;
};

/// The work that one executor could start at once. The most downstream goes first, because that drains tokens soonest; of one
/// node the oldest packet. Not thread-safe.
class WorkQueue {
 public:
  void push(Work&& work);
  std::optional<Work> pop();
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }

 private:
  std::vector<Work> heap_;
};

/// Work that goes on in cooperative steps as long as it is ready, such as decoding. Used by its executor only. Does not throw.
class Stepper {
 public:
  virtual ~Stepper() = default;

  /// Index of Plan::paths: whose groups it takes in.
  virtual int path() const = 0;
  virtual bool ready() = 0;

  /// A step has two halves: what it takes in is decided in the first, what comes out leaves in the second. Between them lies the
  /// time that the step takes.
  virtual void begin_step() = 0;
  virtual void end_step() = 0;
};

/// The steppers of an executor, in turns. Not thread-safe.
class Steppers {
 public:
  void add(Stepper* stepper) { all_.push_back(stepper); }

  /// One that is ready, which then is the last to be asked; null: none is.
  Stepper* next();

 private:
  std::vector<Stepper*> all_;
};

/// A place where nodes run, one piece of work at a time: queued work first, the steppers when nothing is queued.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Steps from the next notify() on. Of several the one that has waited longest goes first.
  virtual void add_stepper(Stepper* stepper) = 0;

  /// What throws (no memory for the queue) has not taken the work.
  virtual void submit(Work work) = 0;

  /// The stepper may have become ready.
  virtual void notify() noexcept = 0;

  /// Pieces of work that could start at once.
  virtual size_t queued() const noexcept = 0;
};

}  // namespace sluice::engine
