#include "comm/parcels/message_socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/numbers/crc32c.h"

namespace sluice::comm {
namespace {

constexpr size_t kBuffer = size_t{4} << 10;  // what is in it of a body is copied once more
constexpr size_t kPiecesAtOnce = 64;
constexpr size_t kWorthWaking = size_t{1} << 20;  // of a body: who wakes for each packet wakes four times as often, or more
constexpr size_t kBytesAtOnce = size_t{2} << 20;  // that are read before others have their turn

// What sendmsg() and recvmsg() take along beside the bytes.
union DescriptorSpace {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

bool is_for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// The bytes from `skipped` on, of `first` and then of `others`.
std::vector<iovec> vectors_of(std::string_view first, const std::vector<std::span<const std::byte>>& others, size_t skipped) {
  std::vector<iovec> vectors;
  const auto add = [&](const void* bytes, size_t size) {
    const size_t skip = std::min(skipped, size);
    skipped -= skip;
    if (skip < size && vectors.size() < kPiecesAtOnce)
      vectors.push_back({const_cast<char*>(static_cast<const char*>(bytes)) + skip, size - skip});
  };
  add(first.data(), first.size());
  for (const auto& piece : others) add(piece.data(), piece.size());
  return vectors;
}

}  // namespace

MessageSocket::MessageSocket(Descriptor socket, int rank) : socket_(std::move(socket)), rank_(rank), buffer_(kBuffer, '\0') {
  const int flags = ::fcntl(socket_.number(), F_GETFL);
  const bool never_waits = flags >= 0 && ::fcntl(socket_.number(), F_SETFL, flags | O_NONBLOCK) == 0;
  SLUICE_CHECK(never_waits, "a socket that is none");
}

void MessageSocket::push(OutgoingMessage message) {
  if (!is_read_) return;
  std::string bytes = message.message.to_bytes();
  unsent_.push_back({std::move(bytes), std::move(message)});
}

void MessageSocket::write() {
  while (!unsent_.empty()) {
    if (!write_some(unsent_.front())) break;
    const Unsent& front = unsent_.front();
    if (front.written == front.bytes.size() + front.rest.message.body_bytes) unsent_.pop_front();
  }
  if (!is_read_) unsent_.clear();
}

// Returns whether the system took anything.
bool MessageSocket::write_some(Unsent& unsent) {
  std::vector<iovec> vectors = vectors_of(unsent.bytes, unsent.rest.body, unsent.written);
  msghdr header{};
  header.msg_iov = vectors.data();
  header.msg_iovlen = vectors.size();
  DescriptorSpace space{};
  if (unsent.rest.descriptor >= 0 && unsent.written == 0) {
    header.msg_control = &space;
    header.msg_controllen = sizeof space;
    space.header.cmsg_level = SOL_SOCKET;
    space.header.cmsg_type = SCM_RIGHTS;
    space.header.cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(&space.header), &unsent.rest.descriptor, sizeof(int));
  }
  const ssize_t count = ::sendmsg(socket_.number(), &header, MSG_NOSIGNAL);
  if (count < 0) {
    is_read_ = is_for_later(errno);
    return false;
  }
  unsent.written += static_cast<size_t>(count);
  written_ += static_cast<uint64_t>(count);
  return true;
}

// Over a Unix socket the system counts its own space for messages too, so that what got there may seem less than it was.
MessageSocket::Sent MessageSocket::sent() const {
  int here = 0;  // with the system of this host
  if (::ioctl(socket_.number(), SIOCOUTQ, &here) != 0) here = 0;
  return {.got_there = written_ - std::min(written_, static_cast<uint64_t>(here)), .has_left = here > 0 || has_unsent()};
}

void MessageSocket::read(MessageTaker& taker) {
  is_behind_ = false;
  read_some(taker);
  wake_for(message_ ? std::min(body_.size(), kWorthWaking) : 1);
}

void MessageSocket::wake_for(size_t bytes) {
  if (bytes == wanted_) return;
  const int wanted = static_cast<int>(bytes);
  ::setsockopt(socket_.number(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted);  // where it cannot be had, it is only slower
  wanted_ = bytes;
}

void MessageSocket::read_some(MessageTaker& taker) {
  size_t count = 0;
  for (taken_ = 0;;) {
    while (!is_behind_ && parse(taker)) is_behind_ = taken_ >= kBytesAtOnce;
    if (is_behind_ || count >= kBytesAtOnce) return;
    const size_t came = message_ ? read_body() : fill();
    if (came == 0) return;
    count += came;
  }
}

// How many bytes came; 0 as well where the connection is closed.
size_t MessageSocket::received(ssize_t count) {
  if (count > 0) return static_cast<size_t>(count);
  if (count == 0 || !is_for_later(errno)) is_open_ = false;
  return 0;
}

size_t MessageSocket::read_body() {
  const size_t count = received(::recv(socket_.number(), body_.data(), body_.size(), 0));
  body_ = body_.subspan(count);
  return count;
}

// More bytes for the buffer, and the descriptors beside them.
size_t MessageSocket::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());  // a message that is longer: one with a header is
  iovec vector{buffer_.data() + end_, buffer_.size() - end_};
  DescriptorSpace space{};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  header.msg_control = &space;
  header.msg_controllen = sizeof space;
  const size_t count = received(::recvmsg(socket_.number(), &header, MSG_CMSG_CLOEXEC));
  if (count == 0) return 0;
  end_ += count;
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    throw UserError("this process has no descriptor left for memory that rank " + std::to_string(rank_) + " shares with it",
                    "a higher limit of open files: ulimit -n");
  }
  const cmsghdr* const beside = CMSG_FIRSTHDR(&header);
  if (beside != nullptr && beside->cmsg_type == SCM_RIGHTS && beside->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(beside), sizeof number);
    descriptors_.emplace_back(number);
  }
  return count;
}

// Takes a message if all of it is there, and its body. Returns whether it was.
bool MessageSocket::parse(MessageTaker& taker) {
  if (!message_) {
    message_ = next_message();
    if (!message_) return false;
    if (message_->body_bytes > 0) body_ = taker.place_of(*message_);
    SLUICE_CHECK(body_.size() == message_->body_bytes, "a body that has another size than its place");
  }
  const size_t here = std::min(body_.size(), end_ - begin_);
  if (here > 0) std::memcpy(body_.data(), buffer_.data() + begin_, here);
  body_ = body_.subspan(here);
  begin_ += here;
  if (!body_.empty()) return false;
  const Message whole = std::move(*message_);
  message_.reset();
  if (whole.kind == Message::Kind::kChunk && whole.body_bytes == 0) taken_ += whole.bytes;
  taker.take(whole);
  return true;
}

std::optional<Message> MessageSocket::next_message() {
  const std::string_view here(buffer_.data() + begin_, end_ - begin_);
  if (here.size() < MessagePrefix::kBytes) return std::nullopt;
  const MessagePrefix prefix = MessagePrefix::from_bytes(here.substr(0, MessagePrefix::kBytes));
  if (prefix.length > MessagePrefix::kLongestMessage) throw_damaged();
  if (here.size() - MessagePrefix::kBytes < prefix.length) return std::nullopt;
  const std::string_view bytes = here.substr(MessagePrefix::kBytes, prefix.length);
  if (crc32c(bytes) != prefix.checksum) throw_damaged();
  begin_ += MessagePrefix::kBytes + prefix.length;
  return Message::from_bytes(bytes);
}

void MessageSocket::throw_damaged() const {
  throw UserError("a message of rank " + std::to_string(rank_) + " about its parcels came damaged",
                  "look for faults of the memory and the network of both machines");
}

void MessageSocket::begin_to_leave(Message goodbye) {
  const auto is_of_no_use = [](const Unsent& unsent) {
    return unsent.written == 0 && unsent.rest.message.kind != Message::Kind::kTaken;
  };
  if (goodbye.ends_early) std::erase_if(unsent_, is_of_no_use);
  push({.message = std::move(goodbye)});
  wake_for(1);
}

bool MessageSocket::leave() {
  write();
  if (unsent_.empty()) ::shutdown(socket_.number(), SHUT_WR);
  std::array<std::byte, kBuffer> dropped;
  for (size_t count = 0; is_open_ && count < kBytesAtOnce;) {
    const size_t came = received(::recv(socket_.number(), dropped.data(), dropped.size(), 0));
    if (came == 0) break;
    count += came;
  }
  return !is_open_ && unsent_.empty();
}

void MessageSocket::close() {
  is_open_ = is_read_ = is_behind_ = false;
  unsent_.clear();
  descriptors_.clear();
  socket_ = Descriptor();
}

Descriptor MessageSocket::take_descriptor() {
  SLUICE_CHECK(!descriptors_.empty(), "a message without the descriptor that belongs to it");
  Descriptor descriptor = std::move(descriptors_.front());
  descriptors_.pop_front();
  return descriptor;
}

}  // namespace sluice::comm
