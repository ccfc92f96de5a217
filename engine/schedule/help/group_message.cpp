#include "engine/schedule/help/group_message.h"

namespace sluice::engine {

ByteWriter GroupMessage::begin(Kind kind, int path, int64_t iteration, int64_t number) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(kind));
  for (const int64_t n : {int64_t{path}, iteration, number}) bytes.number(n);
  return bytes;
}

GroupMessage GroupMessage::read(ByteReader& bytes) {
  const auto kind = static_cast<Kind>(bytes.number<uint8_t>());
  const auto path = static_cast<int>(bytes.whole_number());
  const int64_t iteration = bytes.whole_number(), number = bytes.whole_number();
  return {.kind = kind, .path = path, .iteration = iteration, .number = number};
}

}  // namespace sluice::engine
