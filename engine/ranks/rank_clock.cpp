#include "engine/ranks/rank_clock.h"

#include <chrono>
#include <utility>

#include "base/numbers/bytes.h"

namespace sluice::engine {
namespace {

constexpr int kQuestions = 16;
constexpr int64_t kFreshFor_ns = 60'000'000'000;

enum class Said : uint8_t { kQuestion, kAnswer };

}  // namespace

RankClock::RankClock(Mail& mail, Now now, const std::string& clock) : mail_(mail), now_(std::move(now)), clock_(clock) {
  if (mail_.world().rank == 0) {
    offset_ = ClockOffset{};
  } else {
    left_ = kQuestions;
  }
  mail_.receive(Mail::Channel::kClock, [this](int from, const std::string& message) { receive(from, message); });
  if (mail_.world().rank > 0) ask();
}

std::optional<ClockOffset> RankClock::offset() {
  std::unique_lock lock(mutex_);
  const std::optional<ClockOffset> known = offset_;
  const bool drifts = known && known->error_ns > 0;
  if (!drifts || left_ > 0 || now_() - known_ns_ < kFreshFor_ns) return known;
  left_ = kQuestions;
  best_.reset();
  lock.unlock();
  ask();
  return known;
}

void RankClock::ask() {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(Said::kQuestion));
  bytes.text(clock_);
  {
    const std::lock_guard lock(mutex_);
    asked_ns_ = now_();
  }
  mail_.send(0, Mail::Channel::kClock, bytes.take());
}

void RankClock::receive(int from, const std::string& message) {
  ByteReader bytes(message);
  if (static_cast<Said>(bytes.number<uint8_t>()) == Said::kQuestion) return answer(from, std::string(bytes.text()));
  const int64_t time = bytes.whole_number();
  if (take_in(time, bytes.number<uint8_t>() == 1)) ask();
}

void RankClock::answer(int to, const std::string& clock) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(Said::kAnswer));
  bytes.number(now_());
  bytes.number(static_cast<uint8_t>(!clock_.empty() && clock == clock_));
  mail_.send(to, Mail::Channel::kClock, bytes.take());
}

// Returns whether there is another question.
bool RankClock::take_in(int64_t time_of_rank_0, bool one_clock) {
  const std::lock_guard lock(mutex_);
  const int64_t now = now_(), half = (now - asked_ns_ + 1) / 2;
  const ClockOffset told = one_clock ? ClockOffset{} : ClockOffset{.ns = time_of_rank_0 - (asked_ns_ + half), .error_ns = half};
  if (!best_ || told.error_ns < best_->error_ns) best_ = told;
  left_ = one_clock ? 0 : left_ - 1;
  if (left_ > 0) return true;
  offset_ = best_;
  known_ns_ = now;
  return false;
}

int64_t RankClock::steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::engine
