#include "comm/incarnation.h"

#include <thread>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"

namespace sluice::comm {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr int kLastBeats = 2;  // that one which is lost may have left behind: the one that is there, and one on its way

UserError two_processes(int rank) {
  return UserError("two processes say that they are rank " + std::to_string(rank), "give each process another rank");
}

}  // namespace

std::string bytes_of(const Incarnation& incarnation) {
  ByteWriter bytes;
  bytes.number(incarnation.number);
  bytes.text(incarnation.member.host);
  bytes.number(incarnation.member.pid);
  return bytes.take();
}

Incarnation incarnation_from(const std::string& text) {
  ByteReader bytes(text);
  Incarnation incarnation{.number = bytes.whole_number(), .member = {}};
  incarnation.member.host = bytes.text();
  incarnation.member.pid = bytes.whole_number();
  bytes.expect_end();
  return incarnation;
}

std::string beat_key(int rank, int64_t incarnation) { return "beat/" + std::to_string(rank) + "/" + std::to_string(incarnation); }

std::string gone_key(int rank, int64_t incarnation) { return "gone/" + std::to_string(rank) + "/" + std::to_string(incarnation); }

std::string back_key(int rank) { return "back/" + std::to_string(rank); }

Return::Return(StoreConnection& store, int rank, Member member, Clock::time_point until) : rank_(rank) {
  last_ = store.set_first(back_key(rank), "");
  const int64_t before = last_.empty() ? 0 : incarnation_from(last_).number;
  std::string beat;
  for (int changes = 0; store.set_first(gone_key(rank, before), "").empty();) {
    const std::string last = std::exchange(beat, store.set_first(beat_key(rank, before), ""));
    changes += last == beat ? 0 : 1;
    if (changes > kLastBeats || Clock::now() > until) throw two_processes(rank);
    std::this_thread::sleep_for(kBetweenLooks);
  }
  mine_ = {.number = store.add("returns/" + std::to_string(rank), 1), .member = std::move(member)};
}

void Return::announce(StoreConnection& store) const {
  if (!store.replace(back_key(rank_), last_, bytes_of(mine_))) throw two_processes(rank_);
}

}  // namespace sluice::comm
