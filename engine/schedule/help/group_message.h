#pragma once

#include <cstdint>

#include "base/numbers/bytes.h"
#include "engine/schedule/help/round.h"

namespace sluice::engine {

/// How each message about groups begins. What follows depends on its kind. A plain value.
struct GroupMessage {
  enum class Kind : uint8_t {
    kAsk,        // for a round: whether only for those that were given before
    kNone,       // likewise, of the question
    kGive,       // a group: bytes of the prompt
    kMade,       // a group: tokens, bytes of the group, metrics
    kDeclined,   // a group: metrics
    kNews,       // of a round: the flags of OwnerNews
    kEndBehind,  // no rank goes on after that iteration
  };

  Kind kind = Kind::kAsk;
  int path = 0;
  int64_t iteration = 0;
  int64_t number = 0;  // of the round, or of the group

  /// Of a message that is about a round.
  Round round() const { return {.iteration = iteration, .number = number}; }

  /// The bytes of one, to which the rest is added.
  static ByteWriter begin(Kind kind, int path, int64_t iteration, int64_t number);
  static ByteWriter begin(Kind kind, int path, Round round) { return begin(kind, path, round.iteration, round.number); }

  /// Of one that has come; what follows is left to be read.
  static GroupMessage read(ByteReader& bytes);
};

}  // namespace sluice::engine
