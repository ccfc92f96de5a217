#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/ranks/mail.h"

namespace sluice::engine {

/// Who handles the messages of each channel, and those that came before there was somebody: what every kind of mail needs.
///
/// Threads: set() and keep() from any; handle_kept() on the thread of the mail alone. Failure: what a handler throws is thrown by
/// handle_kept(), and its message is gone.
class MessageHandlers {
 public:
  /// Returns whether messages of the channel are kept: the thread of the mail is to call handle_kept().
  bool set(Mail::Channel channel, Mail::Handler handler) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[channel];
    SLUICE_CHECK(!slot.handler, "a channel of the mail has two handlers");
    slot.handler = std::move(handler);
    return !slot.kept.empty();
  }

  void keep(int from, Mail::Channel channel, std::string message) {
    const std::lock_guard lock(mutex_);
    slots_[channel].kept.push_back({from, std::move(message)});
  }

  /// Calls the handlers, in the order in which the messages of a channel came.
  void handle_kept() {
    while (auto next = take()) next.handler(next.message.from, next.message.text);
  }

 private:
  struct Message {
    int from = 0;
    std::string text;
  };
  struct Slot {
    Mail::Handler handler;
    std::deque<Message> kept;
  };
  struct Next {
    Mail::Handler handler;  // empty: nothing is to be handled
    Message message;

    explicit operator bool() const { return handler != nullptr; }
  };

  Next take() {
    const std::lock_guard lock(mutex_);
    for (auto& [channel, slot] : slots_) {
      if (!slot.handler || slot.kept.empty()) continue;
      Next next{slot.handler, std::move(slot.kept.front())};
      slot.kept.pop_front();
      return next;
    }
    return {};
  }

  std::mutex mutex_;
  std::map<Mail::Channel, Slot> slots_;
};

}  // namespace sluice::engine
