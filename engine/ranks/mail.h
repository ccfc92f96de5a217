#pragma once

#include <functional>
#include <string>

#include "engine/contract/world/world.h"

namespace sluice::engine {

/// Short messages between the ranks of a run: numbers, decisions, lines of text; never columns or weights.
///
/// Messages of one sender on one channel come in the order in which they were sent; nothing is lost and nothing comes twice, or
/// else the run fails: what goes wrong is told once, to whom the maker of the mail has named. Thread-safe.
class Mail {
 public:
  /// Who reads a message. One value for each kind that there is.
  enum class Channel { kNumbers, kControl, kClock, kGroups, kRollCall, kReturns };

  /// Called on the thread of the mail, one message after the other: it must be quick. What it throws ends the mail as a lost
  /// message does: it is told, and no handler is called any more.
  using Handler = std::function<void(int from, const std::string& message)>;

  virtual ~Mail() = default;

  virtual World world() const = 0;

  /// To another rank. Does not wait for it.
  virtual void send(int to, Channel channel, std::string message) = 0;

  /// Who handles the messages of a channel, set once. What came before is kept until then.
  virtual void receive(Channel channel, Handler handler) = 0;

  /// After it returns no handler is called any more, and what is sent is dropped. Not to be called by a handler.
  virtual void close() = 0;
};

}  // namespace sluice::engine
