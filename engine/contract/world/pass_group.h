#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "engine/contract/columns/column.h"

namespace sluice::engine {

/// Ranks that compute the passes of a model together, as one of them sees them. The one at place 0 leads: it has the
/// micro-batches, and says what is computed; the others assist. What is in a message the model knows.
///
/// Belongs to the thread that computes; of the leader one at a time. Waits: as each function says; all of them end, too, where
/// the run is over or another rank is lost, which they throw as UserError. A group of one rank sends nothing.
class PassGroup {
 public:
  using Columns = std::vector<ColumnData>;

  virtual ~PassGroup() = default;

  virtual int place() const = 0;
  virtual int size() const = 0;
  virtual int ring() const = 0;          // blocks that they make in attention
  virtual int expert_ranks() const = 0;  // groups of so many, next to each other, share out the experts of a mixture

  /// A message of one place to another: they come in the order in which they were sent. Does not wait.
  virtual void send(int to, std::string text, Columns columns) = 0;

  /// Waits for: all that this one has sent to be there. Before the run ends well.
  virtual void flush() = 0;

  struct Message {
    std::string text;
    Columns columns;
  };

  /// The next one of that place. `most_bytes`: what its columns take at most, which whoever waits knows. Waits for: it.
  virtual Message receive(int from, int64_t most_bytes) = 0;

  /// Gives each place its columns, and returns those that each has given, at most so many bytes of each. What is of the own place
  /// is left alone, and what has no bytes is not sent. Waits for: those that give it something to call it as often.
  virtual std::vector<Columns> exchange(std::vector<Columns> to, const std::vector<int64_t>& most_bytes) = 0;
};

/// The groups of a run: of each model one for its passes, one for what is saved of it, and one for those who sample from it
/// together. They live as long as this.
class PassGroups {
 public:
  virtual ~PassGroups() = default;

  /// All of its ranks ask for the same names. `first`: it has the first so many of those that compute passes together; 0: all.
  virtual PassGroup& of(const std::string& name, int first = 0) = 0;

  /// Of two ranks of the run, of which this is one: `asks` has place 0 and asks for passes, `answers` computes them. Both ask for
  /// it.
  virtual PassGroup& between(const std::string& name, int asks, int answers) = 0;

  /// Whoever leads holds it while it runs a backward on a device: LibTorch has one thread there for those of all models, which
  /// waits for the other ranks of a pass. So they come one after the other, on all ranks in the same order.
  virtual std::mutex& backward_on(const std::string& device) = 0;

  /// A rank that computes passes for others holds it while it does so: it is at one at a time, with all of its cores.
  virtual std::mutex& answering() = 0;

  /// This rank's run has failed, or is over: who waits learns it. From any thread.
  virtual void abandon() = 0;
};

}  // namespace sluice::engine
