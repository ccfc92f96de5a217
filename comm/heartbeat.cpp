#include "comm/heartbeat.h"

#include <algorithm>
#include <utility>

#include "base/numbers/bytes.h"
#include "base/text/printable.h"

namespace sluice::comm {
namespace {

constexpr std::chrono::seconds kForOthers{5};              // to see why the run ends, before the store ends
constexpr double kForGoodbye = 1;                          // seconds, beside those that an answer may take
constexpr std::chrono::duration<double> kWhileEnding{.1};  // between two looks

constexpr double kBeatsThatCount = 2;  // of the time between two looks: where it was longer, this rank was stopped

constexpr size_t kMostDoing = 300;  // characters of what a rank does

constexpr const char* kLossKey = "loss";

void write_sign(ByteWriter& bytes, const engine::RankSign& sign) {
  bytes.text(shortened(sign.doing, kMostDoing));
  for (const int64_t number : {sign.iterations_done, sign.tokens_in_flight, sign.resident_bytes, sign.save_requests})
    bytes.number(number);
  bytes.number(static_cast<uint8_t>(sign.interrupted));
}

engine::RankSign read_sign(ByteReader& bytes) {
  engine::RankSign sign{.doing = std::string(bytes.text())};
  for (int64_t* number : {&sign.iterations_done, &sign.tokens_in_flight, &sign.resident_bytes, &sign.save_requests})
    *number = bytes.whole_number();
  sign.interrupted = bytes.number<uint8_t>() == 1;
  return sign;
}

}  // namespace

Heartbeat::Heartbeat(const Store& store, HeartbeatOptions options)
    : world_(store.world()),
      options_(std::move(options)),
      store_(store.connect()),
      peers_(static_cast<size_t>(world_.size)),
      members_(store.members()) {
  store_->set_first(kLossKey, "");
  own().incarnation = store.incarnation();
  looked_ = Clock::now();
  for (Peer& peer : peers_) peer.changed = looked_;
  for (int rank = 0; rank < world_.size; ++rank) {
    const std::string back = is_expendable(rank) ? store_->set_first(back_key(rank), "") : std::string();
    if (rank != world_.rank && !back.empty()) take_place(rank, incarnation_from(back));
    keep_in_store(rank);
  }
  show();
  beat();
  thread_ = std::thread([this] { beat_and_watch(); });
}

Heartbeat::~Heartbeat() { fail("it ended early"); }

void Heartbeat::end_well() { end(Ending::kWell, {}); }

void Heartbeat::fail(const std::string& why) { end(Ending::kFailed, why); }

void Heartbeat::step_back(const std::string& why) { end(Ending::kStepsBack, why); }

// Of all ranks, and then two of each that may be lost.
std::vector<std::string> Heartbeat::keys() const {
  std::vector<std::string> keys{kLossKey};
  for (int rank = 0; rank < world_.size; ++rank) keys.push_back(beat_key(rank, peers_[static_cast<size_t>(rank)].incarnation));
  for (int rank = 0; rank < world_.size; ++rank) {
    if (!is_expendable(rank)) continue;
    keys.push_back(gone_key(rank, peers_[static_cast<size_t>(rank)].incarnation));
    keys.push_back(back_key(rank));
  }
  return keys;
}

// So that it can be read.
void Heartbeat::keep_in_store(int rank) {
  const int64_t incarnation = peers_[static_cast<size_t>(rank)].incarnation;
  store_->set_first(beat_key(rank, incarnation), "");
  if (is_expendable(rank)) store_->set_first(gone_key(rank, incarnation), "");
}

// Without rank 0 the thread may wait for an answer that never comes.
void Heartbeat::end(Ending ending, const std::string& why) {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    ending_ = ending;
    why_ = why;
    changed_.notify_all();
    const std::chrono::duration<double> longest(options_.dead_after_seconds + kForGoodbye);
    const bool ends = world_.rank == 0 || changed_.wait_for(lock, longest, [this] { return ended_; });
    if (!ends) store_->interrupt();
  }
  thread_.join();
}

void Heartbeat::beat_and_watch() {
  try {
    while (true) {
      const Ending told = beat();
      give_up_what_was_lost();
      look();
      look_for_the_end();
      if (may_leave(told)) break;
      wait_for_next_beat(told);
    }
  } catch (const StoreLost& error) {
    store_is_lost(error);
  } catch (const std::exception& error) {
    RankLoss loss = loss_of(world_.rank);
    loss.how = RankLoss::How::kFailed;
    loss.why = error.what();
    tell(loss);
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

// Returns what the beat tells of this rank's end.
Heartbeat::Ending Heartbeat::beat() {
  std::unique_lock lock(mutex_);
  const Ending ending = ending_;
  const std::string why = warning_.empty() ? why_ : warning_;
  const bool has_failed = ending == Ending::kFailed || ending == Ending::kStepsBack || !warning_.empty();
  lock.unlock();
  if (has_failed && !own().gone && !std::exchange(has_failed_, true)) {
    RankLoss loss = loss_of(world_.rank);
    loss.how = RankLoss::How::kFailed;
    loss.why = why;
    if (ending == Ending::kStepsBack)
      store_->set_first(gone_key(world_.rank, own().incarnation), bytes_of(loss));
    else
      first_loss(loss);
    trouble_since_ = Clock::now();
  }
  ByteWriter bytes;
  bytes.number(++count_);
  bytes.number(static_cast<uint8_t>(ending != Ending::kNot));
  if (ending == Ending::kNot) write_sign(bytes, options_.sign ? options_.sign() : engine::RankSign());
  store_->set(beat_key(world_.rank, own().incarnation), bytes.take());
  return ending;
}

// The time of judging is that before the look: where this rank itself was stopped meanwhile, nobody else is lost for it.
void Heartbeat::look() {
  const auto looked = Clock::now();
  leave_out_what_was_not_watched(looked);
  const std::vector<std::string> values = store_->values(keys());
  const auto now = Clock::now();
  for (int rank = 0; rank < world_.size; ++rank)
    take_in(peers_[static_cast<size_t>(rank)], values[static_cast<size_t>(rank) + 1], now);
  show();
  if (!values.front().empty()) {
    tell(loss_from(values.front()));
    return;
  }
  look_for_gone(values);
  for (int rank = 0; rank < world_.size; ++rank) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    const std::chrono::duration<double> silence = looked - peer.changed;
    const double longest = peer.beat.empty() ? options_.first_beat_seconds : options_.dead_after_seconds;
    if (rank == world_.rank || peer.ended || silence.count() <= longest) continue;
    RankLoss loss = loss_of(rank);
    loss.seconds = silence.count();
    if (is_expendable(rank)) {
      store_->set_first(gone_key(rank, peer.incarnation), bytes_of(loss));
      continue;  // this rank learns of it as the others do, at the next look
    }
    tell(first_loss(loss));
    return;
  }
}

// Nor where it was stopped between two looks, as by Ctrl-Z, which stops all ranks: the others may go on a little later.
void Heartbeat::leave_out_what_was_not_watched(Clock::time_point now) {
  const auto since = now - std::exchange(looked_, now);
  const std::chrono::duration<double> most(kBeatsThatCount * options_.beat_seconds);
  if (since <= most) return;
  const auto left_out = std::chrono::duration_cast<Clock::duration>(since - most);
  for (Peer& peer : peers_) peer.changed = std::min(peer.changed + left_out, now);
}

void Heartbeat::warn(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (warning_.empty()) warning_ = why;
  changed_.notify_all();
}

void Heartbeat::give_up(int rank, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  to_give_up_.emplace_back(rank, incarnation);
  changed_.notify_all();
}

// Where somebody has written a loss of it, that one stays.
void Heartbeat::give_up_what_was_lost() {
  std::vector<std::pair<int, int64_t>> ranks;
  {
    const std::lock_guard lock(mutex_);
    ranks.swap(to_give_up_);
  }
  for (const auto& [rank, incarnation] : ranks) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (peer.ended || peer.incarnation != incarnation) continue;
    RankLoss loss = loss_of(rank);
    loss.how = RankLoss::How::kClosed;
    store_->set_first(gone_key(rank, peer.incarnation), bytes_of(loss));
  }
}

// Who comes back comes in the place of one that is gone.
void Heartbeat::look_for_gone(const std::vector<std::string>& values) {
  size_t next = static_cast<size_t>(world_.size) + 1;
  for (int rank = 0; rank < world_.size; ++rank) {
    if (!is_expendable(rank)) continue;
    const std::string &gone = values[next++], &back = values[next++];
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!gone.empty() && !std::exchange(peer.gone, true)) {
      if (rank == world_.rank) return tell(loss_from(gone));
      peer.ended = true;
      if (options_.gone) options_.gone(loss_from(gone));
    }
    if (rank == world_.rank || !peer.gone || back.empty()) continue;
    const Incarnation incarnation = incarnation_from(back);
    if (incarnation.number <= peer.incarnation) continue;
    take_place(rank, incarnation);
    keep_in_store(rank);
    if (options_.back) options_.back(rank, incarnation.number);
  }
}

void Heartbeat::take_place(int rank, const Incarnation& incarnation) {
  const auto index = static_cast<size_t>(rank);
  peers_[index] = Peer{.incarnation = incarnation.number, .changed = Clock::now()};
  const std::lock_guard lock(mutex_);
  members_[index] = incarnation.member;
}

void Heartbeat::look_for_the_end() {
  if (world_.rank == 0 || !peers_.front().ended || told_ || std::exchange(told_of_end_, true)) return;
  if (options_.over) options_.over();
}

void Heartbeat::take_in(Peer& peer, const std::string& beat, Clock::time_point now) {
  if (beat == peer.beat || peer.gone) return;
  peer.beat = beat;
  peer.changed = now;
  ByteReader bytes(beat);
  bytes.number<uint64_t>();
  peer.ended = bytes.number<uint8_t>() == 1;
  if (!peer.ended) peer.sign = read_sign(bytes);
}

void Heartbeat::show() {
  const std::lock_guard lock(mutex_);
  shown_ = peers_;
}

std::vector<engine::RankSeen> Heartbeat::seen() const {
  std::vector<engine::RankSeen> all;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  for (const Peer& peer : shown_) {
    const size_t rank = all.size();
    all.push_back({.rank = static_cast<int>(rank),
                   .host = members_[rank].host,
                   .pid = members_[rank].pid,
                   .last = peer.sign,
                   .silent_seconds = std::chrono::duration<double>(now - peer.changed).count()});
    if (peer.ended) all.back().last.doing = peer.gone ? "is lost" : "has ended";
  }
  return all;
}

// Not of what this rank itself has said, and once.
void Heartbeat::tell(const RankLoss& loss) {
  peers_.at(static_cast<size_t>(loss.rank)).ended = true;
  if (has_failed_ || std::exchange(told_, true)) return;
  trouble_since_ = Clock::now();
  if (options_.lost) options_.lost(loss);
}

// Of several losses all ranks are to tell the same.
RankLoss Heartbeat::first_loss(const RankLoss& mine) { return loss_from(store_->set_first(kLossKey, bytes_of(mine))); }

RankLoss Heartbeat::loss_of(int rank) const {
  const auto index = static_cast<size_t>(rank);
  return {.rank = rank, .host = members_[index].host, .pid = members_[index].pid, .doing = peers_[index].sign.doing};
}

void Heartbeat::store_is_lost(const StoreLost& error) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ != Ending::kNot) return;
  }
  RankLoss loss = loss_of(0);
  loss.how = error.how() == StoreLost::How::kClosed ? RankLoss::How::kClosed : RankLoss::How::kSilent;
  loss.seconds = std::chrono::duration<double>(Clock::now() - peers_.front().changed).count();
  tell(loss);
}

bool Heartbeat::may_leave(Ending ending) const {
  if (ending == Ending::kNot) return false;
  if (world_.rank != 0) return true;
  const bool all_ended = std::ranges::all_of(peers_.begin() + 1, peers_.end(), &Peer::ended);
  return all_ended || ((told_ || has_failed_) && Clock::now() - trouble_since_ > kForOthers);
}

// Waits for: the time of the next beat. Ends when: it is, or this rank is to end and `told` does not say so.
void Heartbeat::wait_for_next_beat(Ending told) {
  const std::chrono::duration<double> pause =
      told == Ending::kNot ? std::chrono::duration<double>(options_.beat_seconds) : kWhileEnding;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, pause, [&] { return ending_ != told || !to_give_up_.empty() || (!warning_.empty() && !has_failed_); });
}

}  // namespace sluice::comm
