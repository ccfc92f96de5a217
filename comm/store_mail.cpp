#include "comm/store_mail.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"

namespace sluice::comm {
namespace {

constexpr size_t kLongestPiece = size_t{1} << 20;   // the store takes 8 MB
constexpr double kSecondsOfAWait = 30;              // for a message; then the thread asks whether the store is there
constexpr uint8_t kWakesUp = 255;                   // the kind of a message to oneself; else it is the channel
constexpr std::chrono::seconds kForTheReceiver{1};  // to end by itself

std::string inbox_of(int rank, int64_t incarnation) {
  return "inbox/" + std::to_string(rank) + "/" + std::to_string(incarnation);
}

}  // namespace

StoreMail::StoreMail(const Store& store, Failed failed)
    : world_(store.world()),
      failed_(std::move(failed)),
      incarnations_(static_cast<size_t>(world_.size)),
      lost_(static_cast<size_t>(world_.size)),
      out_(store.connect()),
      sent_(static_cast<size_t>(world_.size)),
      is_held_(store.incarnation() > 0),
      in_(store.connect()),
      senders_(static_cast<size_t>(world_.size)) {
  incarnations_[static_cast<size_t>(world_.rank)] = store.incarnation();
  thread_ = std::thread([this] { empty_inbox(); });
}

StoreMail::~StoreMail() { close(); }

void StoreMail::send(int to, Channel channel, std::string message) { push(to, static_cast<uint8_t>(channel), message); }

void StoreMail::lose(int rank) { lost_.at(static_cast<size_t>(rank)) = true; }

void StoreMail::take_back(int rank, int64_t incarnation) {
  const auto index = static_cast<size_t>(rank);
  const std::lock_guard lock(sending_);
  sent_.at(index) = 0;
  incarnations_[index] = incarnation;
  lost_[index] = false;
}

void StoreMail::begin() {
  try {
    const std::lock_guard lock(sending_);
    is_held_ = false;
    for (const Held& held : std::exchange(held_, {})) push_pieces(held.to, held.kind, held.message);
  } catch (...) {
    fail(std::current_exception());
  }
}

void StoreMail::receive(Channel channel, Handler handler) {
  if (handlers_.set(channel, std::move(handler))) wake();
}

// The thread waits for a message: it gets one.
void StoreMail::wake() { push(world_.rank, kWakesUp, {}); }

void StoreMail::push(int to, uint8_t kind, std::string_view message) {
  try {
    const std::lock_guard lock(sending_);
    if ((over_ && kind != kWakesUp) || lost_.at(static_cast<size_t>(to))) return;
    if (is_held_ && to != world_.rank) return held_.push_back({to, kind, std::string(message)});
    push_pieces(to, kind, message);
  } catch (...) {
    fail(std::current_exception());
  }
}

// With the lock.
void StoreMail::push_pieces(int to, uint8_t kind, std::string_view message) {
  for (size_t begin = 0; begin == 0 || begin < message.size(); begin += kLongestPiece) {
    push_piece(to, kind, begin + kLongestPiece >= message.size(), message.substr(begin, kLongestPiece));
  }
}

void StoreMail::push_piece(int to, uint8_t kind, bool is_last, std::string_view piece) {
  ByteWriter frame;
  frame.number(static_cast<uint32_t>(world_.rank));
  frame.number(incarnations_[static_cast<size_t>(world_.rank)].load());
  frame.number(sent_.at(static_cast<size_t>(to))++);
  frame.number(kind);
  frame.number(static_cast<uint8_t>(is_last));
  frame.raw(piece);
  out_->push(inbox_of(to, incarnations_[static_cast<size_t>(to)]), frame.take());
}

void StoreMail::empty_inbox() {
  const std::string inbox = inbox_of(world_.rank, incarnations_[static_cast<size_t>(world_.rank)]);
  try {
    while (!over_) {
      if (const auto frame = in_->pop(inbox, kSecondsOfAWait)) take_in(*frame);
      if (!over_) handlers_.handle_kept();
    }
  } catch (...) {
    fail(std::current_exception());
  }
  const std::lock_guard lock(ending_);
  ended_ = true;
  ended_now_.notify_all();
}

void StoreMail::take_in(const std::string& frame) {
  ByteReader bytes(frame);
  const auto from = bytes.number<uint32_t>();
  const int64_t incarnation = bytes.whole_number();
  const auto number = bytes.number<uint64_t>();
  const auto kind = bytes.number<uint8_t>(), is_last = bytes.number<uint8_t>();
  SLUICE_CHECK(from < senders_.size(), "a message of a rank that there is not");
  if (lost_[from] || incarnation != incarnations_[from]) return;
  Sender& sender = senders_[from];
  if (sender.incarnation != incarnation) sender = {.incarnation = incarnation, .pieces = {}};
  if (number != sender.next) {
    throw UserError("message " + std::to_string(number) + " of rank " + std::to_string(from) + " came instead of " +
                        std::to_string(sender.next),
                    "look for faults of the memory and the network of rank 0's machine, which hands messages on");
  }
  ++sender.next;
  if (kind == kWakesUp) return;
  SLUICE_CHECK(kind <= static_cast<uint8_t>(Channel::kReturns), "a message on a channel that there is not");
  sender.pieces += bytes.rest();
  if (is_last == 1) handlers_.keep(static_cast<int>(from), static_cast<Channel>(kind), std::exchange(sender.pieces, {}));
}

void StoreMail::fail(std::exception_ptr error) {
  if (!over_.exchange(true)) failed_(std::move(error));
}

// The connection is broken off only where rank 0 does not answer: LibTorch tells people of each that breaks.
void StoreMail::close() {
  if (!thread_.joinable()) return;
  SLUICE_CHECK(std::this_thread::get_id() != thread_.get_id(), "a handler closes its mail");
  over_ = true;
  wake();
  {
    std::unique_lock lock(ending_);
    if (!ended_now_.wait_for(lock, kForTheReceiver, [this] { return ended_; })) in_->interrupt();
  }
  thread_.join();
}

}  // namespace sluice::comm
