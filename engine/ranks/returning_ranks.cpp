#include "engine/ranks/returning_ranks.h"

#include <string>
#include <utility>

#include "base/numbers/bytes.h"

namespace sluice::engine {
namespace {

constexpr int64_t kNone = -1;

std::string message_of(int64_t number) {
  ByteWriter bytes;
  bytes.number(number);
  return bytes.take();
}

int64_t number_of(const std::string& message) {
  ByteReader bytes(message);
  const int64_t number = bytes.whole_number();
  bytes.expect_end();
  return number;
}

}  // namespace

void ReturningRanks::listen() {
  mail_.receive(Mail::Channel::kReturns,
                [self = shared_from_this()](int from, const std::string& message) { self->hear(from, message); });
}

void ReturningRanks::hear(int from, const std::string& message) {
  const int64_t incarnation = number_of(message);
  {
    const std::lock_guard lock(mutex_);
    if (!over_) {
      waiting_[from] = incarnation;
      return;
    }
  }
  answer(from, std::nullopt);
}

std::vector<ReturningRank> ReturningRanks::waiting() const {
  const std::lock_guard lock(mutex_);
  std::vector<ReturningRank> all;
  for (const auto& [rank, incarnation] : waiting_) all.push_back({rank, incarnation});
  return all;
}

void ReturningRanks::answer(int rank, std::optional<int64_t> first_version) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.erase(rank);
  }
  mail_.send(rank, Mail::Channel::kReturns, message_of(first_version.value_or(kNone)));
}

void ReturningRanks::lose(int rank, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(rank);
  if (found != waiting_.end() && found->second <= incarnation) waiting_.erase(found);
}

void ReturningRanks::end() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  for (const ReturningRank& one : waiting()) answer(one.rank, std::nullopt);
}

void ask_to_come_in(Mail& mail, int64_t incarnation, std::function<void(std::optional<int64_t> first_version)> answered) {
  mail.receive(Mail::Channel::kReturns, [answered = std::move(answered)](int, const std::string& message) {
    const int64_t version = number_of(message);
    answered(version == kNone ? std::nullopt : std::optional(version));
  });
  mail.send(0, Mail::Channel::kReturns, message_of(incarnation));
}

}  // namespace sluice::engine
