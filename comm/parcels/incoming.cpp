#include "comm/parcels/incoming.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/numbers/crc32c.h"

namespace sluice::comm {
namespace {

std::string text_of_chunk(uint32_t chunk) {
  return chunk == Message::kHeadAsChunk ? "the header" : "chunk " + std::to_string(chunk);
}

}  // namespace

void Incoming::grant(engine::ParcelKey key, int64_t most_bytes, engine::Parcels::Arrived arrived) {
  const auto most = static_cast<size_t>(std::max<int64_t>(most_bytes, 0));
  std::shared_ptr<Block> block = block_for(key, std::max<size_t>(most, 1));
  grant({.key = std::move(key), .place = {std::move(block), 0, most}, .arrived = std::move(arrived)});
}

std::shared_ptr<Block> Incoming::block_for(const engine::ParcelKey& key, size_t bytes) {
  try {
    return pool_.take(bytes);
  } catch (const UserError& error) {
    const Problem& cause = error.problems().front();
    throw UserError(Problem{.where = {},
                            .message = "there is no memory for " + engine::text_of(key) + " of rank " + std::to_string(other_),
                            .caret = {},
                            .notes = {cause.message},
                            .help = cause.help});
  }
}

void Incoming::grant(engine::ParcelKey key, LandingPlace place, Landed landed) {
  SLUICE_CHECK(place.size > 0 && place.begin + place.size <= place.block->memory.bytes(), "a place that is not in its block");
  grant({.key = std::move(key), .place = std::move(place), .landed = std::move(landed)});
}

void Incoming::borrow(engine::ParcelKey key, Borrowed borrowed) {
  if (auto lent = to_lend_.extract(key)) return borrowed(std::move(lent.mapped()));
  const bool is_new = to_borrow_.emplace(std::move(key), std::move(borrowed)).second;
  SLUICE_CHECK(is_new, "memory is borrowed twice");
}

void Incoming::take_lent(const Message& lent) {
  std::shared_ptr<Block> block = pool_.take_lent(socket_.take_descriptor(), lent.block_bytes);
  if (const auto waiting = to_borrow_.extract(lent.key)) return waiting.mapped()(std::move(block));
  const bool is_new = to_lend_.emplace(lent.key, std::move(block)).second;
  SLUICE_CHECK(is_new, engine::text_of(lent.key) + " is lent twice by rank " + std::to_string(other_));
}

const engine::ParcelKey* Incoming::unfinished() const {
  if (!granted_.empty()) return &granted_.begin()->second.key;
  return to_borrow_.empty() ? nullptr : &to_borrow_.begin()->first;
}

void Incoming::clear() {
  granted_.clear();
  to_borrow_.clear();
  to_lend_.clear();
}

void Incoming::grant(Granted granted) {
  OutgoingMessage out{.message = {.kind = Message::Kind::kGrant,
                                  .grant = next_grant_,
                                  .bytes = granted.place.size,
                                  .place = granted.place.begin,
                                  .key = granted.key}};
  wire_.show(granted.place.block, out);
  granted_.emplace(next_grant_++, std::move(granted));
  socket_.push(std::move(out));
}

Incoming::Granted& Incoming::granted_of(const Message& message) {
  const auto granted = granted_.find(message.grant);
  SLUICE_CHECK(granted != granted_.end(), "rank " + std::to_string(other_) + " sends a parcel that was not granted");
  return granted->second;
}

std::span<std::byte> Incoming::place_of(const Message& chunk) {
  const Granted& granted = granted_of(chunk);
  const ChunkRange range = ChunkRange::of(chunk.chunk, granted.place.size);
  SLUICE_CHECK(chunk.bytes <= range.size(), "rank " + std::to_string(other_) + " sends more than was granted");
  return {granted.place.data() + range.begin, chunk.bytes};
}

void Incoming::take_head(const Message& head) {
  Granted& granted = granted_of(head);
  std::string text = head.text;
  bytes_ += std::ssize(text);
  if (!is_sound(granted, head, std::as_writable_bytes(std::span(text)))) return;
  granted.form = ParcelForm::from_bytes(text);
  SLUICE_CHECK(granted.form->bytes() <= granted.place.size, "rank " + std::to_string(other_) + " sends more than was granted");
  finish_if_whole(head.grant, granted);
}

void Incoming::take_chunk(const Message& chunk) {
  Granted& granted = granted_of(chunk);
  const std::span<std::byte> bytes = place_of(chunk);
  bytes_ += std::ssize(bytes);
  wire_.learn(chunk, socket_);
  const auto taken = chunk.is_to_fetch ? std::optional(wire_.fetch(chunk, bytes)) : std::nullopt;
  if (!is_sound(granted, chunk, bytes, taken)) return;
  granted.came += bytes.size();
  if (granted.landed) {
    if (granted.checksums.size() <= chunk.chunk) granted.checksums.resize(chunk.chunk + size_t{1});
    granted.checksums[chunk.chunk] = chunk.checksum;
  }
  finish_if_whole(chunk.grant, granted);
}

// Asks for it once more where that is allowed, and throws where it is not. `taken`: the checksum, where it is known already.
bool Incoming::is_sound(Granted& granted, const Message& message, std::span<std::byte> bytes, std::optional<uint32_t> taken) {
  const uint32_t number = message.kind == Message::Kind::kHead ? Message::kHeadAsChunk : message.chunk;
  if (options_.on_the_way) {
    options_.on_the_way({other_, granted.key, number}, bytes);
    taken.reset();
  }
  const uint32_t checksum = taken ? *taken : crc32c({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (checksum == message.checksum) return true;
  if (options_.sends_again && granted.asked_again.insert(number).second) {
    socket_.push({.message = {.kind = Message::Kind::kAgain, .grant = message.grant, .chunk = number}});
    return false;
  }
  throw UserError(text_of_chunk(number) + " of " + engine::text_of(granted.key) + " came damaged from rank " +
                      std::to_string(other_) + ": its checksum is " + checksum_text(checksum) + " and not " +
                      checksum_text(message.checksum),
                  "look for faults of the memory and the network of both machines");
}

void Incoming::finish_if_whole(uint64_t grant, Granted& granted) {
  if (!granted.form || granted.came < granted.form->bytes()) return;
  const Granted whole = std::move(granted);
  granted_.erase(grant);
  socket_.push({.message = {.kind = Message::Kind::kTaken, .grant = grant}});
  socket_.write();
  const std::shared_ptr<std::byte> bytes(whole.place.block, whole.place.data());
  if (whole.landed) {
    SLUICE_CHECK(whole.form->bytes() == whole.place.size, engine::text_of(whole.key) + " does not fill its place");
    whole.landed({bytes, whole.place.size, whole.checksums, whole.place.block});
  } else {
    whole.arrived({.header = whole.form->header, .columns = columns_of(*whole.form, bytes)});
  }
}

}  // namespace sluice::comm
