#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/descriptor.h"
#include "comm/parcels/message.h"

namespace sluice::comm {

/// A message on its way out.
struct OutgoingMessage {
  Message message;
  int descriptor = -1;                           // that goes with it; between processes of one host
  std::vector<std::span<const std::byte>> body;  // after it, of message.body_bytes
  std::shared_ptr<const void> keeps = {};        // what body and descriptor belong to
};

/// Who gets what comes over a socket.
class MessageTaker {
 public:
  virtual ~MessageTaker() = default;

  /// Where the body of this message goes: so many bytes.
  virtual std::span<std::byte> place_of(const Message& message) = 0;

  /// A message, and its body where it has one.
  virtual void take(const Message& message) = 0;
};

/// A connection to one other rank, over which messages go in order, some with bytes after them that are copied nowhere on their
/// way: straight out of where they lie, and straight to where they belong. No call waits.
///
/// Belongs to one thread. Failure: a connection that is closed is no error here, but is_open() says so; damage to a message is a
/// UserError that names the rank.
class MessageSocket {
 public:
  /// `socket`: connected to this rank, and to nobody else.
  MessageSocket(Descriptor socket, int rank);

  int descriptor() const { return socket_.number(); }

  /// The other rank may send something still.
  bool is_open() const { return is_open_; }

  void push(OutgoingMessage message);

  /// Some of what was pushed is still here.
  bool has_unsent() const { return !unsent_.empty(); }

  /// Bytes that the system of the other rank has, or the rank itself where it is on this host, and whether there are others
  /// that were pushed.
  struct Sent {
    uint64_t got_there = 0;
    bool has_left = false;
  };
  Sent sent() const;

  /// Writes what the system takes now; what nobody will read is dropped.
  void write();

  /// Reads what is there, but for more than some chunks: others are to have their turn. is_behind() afterwards: there may be more
  /// to take of what was read.
  void read(MessageTaker& taker);
  bool is_behind() const { return is_behind_; }

  /// The end in steps, after which the other rank has heard the goodbye: of a connection that is closed while something lies
  /// there unread, the system may take along what was written last. begin_to_leave() pushes it, after what is unsent or, where
  /// this rank ends early, after what of that is half written or is word of what was taken. leave() writes it and drops what
  /// comes; it returns whether all is written and the other side sends nothing more. Then close().
  void begin_to_leave(Message goodbye);
  bool leave();

  /// Nothing more is sent, read or kept.
  void close();

  /// The descriptor that came with the message that is being taken.
  Descriptor take_descriptor();

 private:
  struct Unsent {
    std::string bytes;
    OutgoingMessage rest;
    size_t written = 0;  // of bytes and body together
  };

  bool write_some(Unsent& unsent);
  void read_some(MessageTaker& taker);
  size_t received(ssize_t count);
  size_t read_body();
  size_t fill();
  void wake_for(size_t bytes);
  bool parse(MessageTaker& taker);
  std::optional<Message> next_message();
  [[noreturn]] void throw_damaged() const;

  Descriptor socket_;
  const int rank_;
  bool is_open_ = true, is_read_ = true;  // by this side, by the other
  std::deque<Unsent> unsent_;
  uint64_t written_ = 0;  // bytes that the system has taken

  std::string buffer_;  // what was read and not taken: from begin_ to end_
  size_t begin_ = 0, end_ = 0;
  bool is_behind_ = false;
  size_t taken_ = 0;                // of chunks whose bytes go another way, in this turn
  std::optional<Message> message_;  // whose body comes
  std::span<std::byte> body_;       // what is missing of it
  size_t wanted_ = 1;               // bytes that the system is to have before there is something to read
  std::deque<Descriptor> descriptors_;
};

}  // namespace sluice::comm
