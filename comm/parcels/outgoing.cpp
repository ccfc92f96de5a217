#include "comm/parcels/outgoing.h"

#include <utility>

#include "base/error.h"
#include "base/numbers/crc32c.h"

namespace sluice::comm {

using engine::ParcelKey;

void Outgoing::offer(ParcelKey key, engine::Parcel parcel, std::function<void()> done) {
  const int64_t credit = engine::credit_bytes(parcel);
  offer(std::move(key), Offer{std::make_shared<const Payload>(std::move(parcel)), credit, std::move(done)});
}

void Outgoing::offer(ParcelKey key, ByteParcel parcel, std::function<void()> done) {
  const auto credit = static_cast<int64_t>(parcel.size);
  offer(std::move(key), Offer{std::make_shared<const Payload>(std::move(parcel)), credit, std::move(done)});
}

void Outgoing::offer(ParcelKey key, Offer offer) {
  if (const auto grant = grants_.extract(key)) {
    begin(grant.mapped(), std::move(offer));
  } else {
    const bool is_new = offers_.emplace(key, std::move(offer)).second;
    SLUICE_CHECK(is_new, engine::text_of(key) + " is offered twice to rank " + std::to_string(other_));
  }
  note_wait();
}

void Outgoing::granted(const Message& grant) {
  wire_.learn(grant, socket_);
  if (auto offer = offers_.extract(grant.key)) {
    begin(grant, std::move(offer.mapped()));
  } else {
    const bool is_new = grants_.emplace(grant.key, grant).second;
    SLUICE_CHECK(is_new, engine::text_of(grant.key) + " is granted twice by rank " + std::to_string(other_));
  }
  note_wait();
}

void Outgoing::begin(const Message& grant, Offer offer) {
  if (offer.credit_bytes > static_cast<int64_t>(grant.bytes)) {
    throw InternalError(engine::text_of(grant.key) + " of rank " + std::to_string(rank_) + " takes " +
                        std::to_string(offer.credit_bytes) + " bytes, where rank " + std::to_string(other_) + " has granted " +
                        std::to_string(grant.bytes));
  }
  sent_.emplace(grant.grant, Sent{.grant = grant, .offer = std::move(offer)});
  under_way_.insert(grant.grant);
}

void Outgoing::asked_again(const Message& message) {
  sent_of(message);
  ++chunks_again_;
  again_.push_back(message);
}

void Outgoing::taken(const Message& message) {
  const std::function<void()> done = std::move(sent_of(message).offer.done);
  sent_.erase(message.grant);
  if (done) done();
}

Outgoing::Sent& Outgoing::sent_of(const Message& message) {
  const auto sent = sent_.find(message.grant);
  SLUICE_CHECK(sent != sent_.end(), "rank " + std::to_string(other_) + " speaks of a parcel that is not on its way to it");
  return sent->second;
}

void Outgoing::send_next() {
  if (!again_.empty()) {
    const Message message = again_.front();
    again_.pop_front();
    const Sent& sent = sent_of(message);
    return message.chunk == Message::kHeadAsChunk ? send_head(sent) : send_chunk(sent, message.chunk);
  }
  Sent& sent = sent_.at(*under_way_.begin());
  if (!std::exchange(sent.has_head, true)) send_head(sent);
  const size_t count = ChunkRange::count(sent.offer.payload->form().bytes());
  if (sent.next_chunk < count) send_chunk(sent, sent.next_chunk++);
  if (sent.next_chunk >= count) under_way_.erase(under_way_.begin());
  note_wait();
}

void Outgoing::send_head(const Sent& sent) {
  std::string form = sent.offer.payload->form().to_bytes();
  bytes_ += std::ssize(form);
  const uint32_t checksum = crc32c(form);
  socket_.push(
      {.message = {.kind = Message::Kind::kHead, .grant = sent.grant.grant, .checksum = checksum, .text = std::move(form)}});
}

void Outgoing::send_chunk(const Sent& sent, uint32_t chunk) {
  const ChunkRange range = ChunkRange::of(chunk, sent.offer.payload->form().bytes());
  OutgoingMessage out{
      .message = {.kind = Message::Kind::kChunk, .grant = sent.grant.grant, .chunk = chunk, .bytes = range.size()}};
  out.message.checksum = wire_.put(sent.grant, sent.offer.payload, range, out);
  sent.offer.payload->remember(chunk, out.message.checksum);
  bytes_ += static_cast<int64_t>(range.size());
  socket_.push(std::move(out));
}

const ParcelKey* Outgoing::unfinished() const {
  if (!sent_.empty()) return &sent_.begin()->second.grant.key;
  return offers_.empty() ? nullptr : &offers_.begin()->first;
}

void Outgoing::clear() {
  offers_.clear();
  grants_.clear();
  sent_.clear();
  under_way_.clear();
  again_.clear();
  note_wait();
}

void Outgoing::note_wait() {
  const bool waits = !offers_.empty() && under_way_.empty();
  const Clock::time_point since = waits_since_;
  if (waits == (since != Clock::time_point())) return;
  if (!waits) waited_ = waited_.load() + (Clock::now() - since);
  waits_since_ = waits ? Clock::now() : Clock::time_point();
}

void Outgoing::add_to(engine::ParcelTraffic& traffic) const {
  const Clock::time_point since = waits_since_;
  const Clock::duration now = since == Clock::time_point() ? Clock::duration() : Clock::now() - since;
  traffic.bytes_sent = bytes_;
  traffic.chunks_sent_again = chunks_again_;
  traffic.credit_wait_seconds = std::chrono::duration<double>(waited_.load() + now).count();
}

}  // namespace sluice::comm
