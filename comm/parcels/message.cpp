#include "comm/parcels/message.h"

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "base/numbers/crc32c.h"

namespace sluice::comm {

std::string Message::to_bytes() const {
  ByteWriter message;
  message.number(static_cast<uint8_t>(kind));
  message.number(grant);
  message.number(chunk);
  message.number(checksum);
  message.number(bytes);
  message.number(body_bytes);
  message.number(block);
  message.number(block_bytes);
  message.number(place);
  message.number(static_cast<uint8_t>(is_new_block));
  message.number(static_cast<uint8_t>(is_to_fetch));
  message.number(static_cast<uint8_t>(ends_early));
  message.text(key.edge);
  message.number(key.iteration);
  message.number(key.number);
  message.number(static_cast<uint8_t>(key.of));
  message.number(key.piece);
  message.text(text);
  const std::string written = message.take();
  SLUICE_CHECK(written.size() <= MessagePrefix::kLongestMessage, "a message about a parcel that is too long");
  ByteWriter whole;
  whole.number(static_cast<uint32_t>(written.size()));
  whole.number(crc32c(written));
  whole.raw(written);
  return whole.take();
}

Message Message::from_bytes(std::string_view text) {
  ByteReader reader(text);
  Message message;
  const auto kind = reader.number<uint8_t>();
  SLUICE_CHECK(kind <= static_cast<uint8_t>(Kind::kGoodbye), "a message of a kind that there is not");
  message.kind = static_cast<Kind>(kind);
  message.grant = reader.number<uint64_t>();
  message.chunk = reader.number<uint32_t>();
  message.checksum = reader.number<uint32_t>();
  message.bytes = reader.number<uint64_t>();
  message.body_bytes = reader.number<uint64_t>();
  message.block = reader.number<uint32_t>();
  message.block_bytes = reader.number<uint64_t>();
  message.place = reader.number<uint64_t>();
  message.is_new_block = reader.number<uint8_t>() != 0;
  message.is_to_fetch = reader.number<uint8_t>() != 0;
  message.ends_early = reader.number<uint8_t>() != 0;
  message.key.edge = reader.text();
  message.key.iteration = reader.whole_number();
  message.key.number = reader.whole_number();
  const auto of = reader.number<uint8_t>();
  SLUICE_CHECK(of <= static_cast<uint8_t>(engine::ParcelOf::kPass), "a parcel of what there is not");
  message.key.of = static_cast<engine::ParcelOf>(of);
  message.key.piece = reader.whole_number();
  message.text = reader.text();
  reader.expect_end();
  return message;
}

MessagePrefix MessagePrefix::from_bytes(std::string_view bytes) {
  ByteReader reader(bytes);
  MessagePrefix prefix;
  prefix.length = reader.number<uint32_t>();
  prefix.checksum = reader.number<uint32_t>();
  return prefix;
}

}  // namespace sluice::comm
