#include "engine/schedule/help/group_asker.h"

#include <algorithm>
#include <utility>

#include "engine/ranks/contribution_bytes.h"
#include "engine/ranks/group_parcel.h"

namespace sluice::engine {

void GroupAsker::ask(int path, int owner, Round round, bool only_again) {
  ByteWriter bytes = GroupMessage::begin(Kind::kAsk, path, round);
  bytes.number(static_cast<uint8_t>(only_again));
  links_.send(owner, bytes.take());
}

std::optional<GroupAsker::Answer> GroupAsker::take_answer(int path) {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_.at(static_cast<size_t>(path)), std::nullopt);
}

bool GroupAsker::has_answer(int path) const {
  const std::lock_guard lock(mutex_);
  return answers_.at(static_cast<size_t>(path)).has_value();
}

void GroupAsker::give_back(int path, int owner, const Group& group, Credit credit, const Contribution& metrics) {
  const Under under{path, group.iteration, group.index};
  Parcel parcel = parcel_of(group);
  const int64_t bytes_of_group = credit_bytes(parcel);
  {
    const std::lock_guard lock(mutex_);
    lent_.emplace(under, Lent{std::move(credit), bytes_of_group});
  }
  tell_bytes(bytes_of_group);
  ByteWriter bytes = GroupMessage::begin(Kind::kMade, path, group.iteration, group.index);
  bytes.number(static_cast<int64_t>(group.layout.tokens()));
  bytes.number(bytes_of_group);
  write_contribution(bytes, metrics);
  links_.send(owner, links_.made_key(path, group.iteration, group.index), std::move(parcel), [this, under] { be_gone(under); });
  links_.send(owner, bytes.take());
}

void GroupAsker::decline(int path, int owner, int64_t iteration, int64_t group, const Contribution& metrics) {
  ByteWriter bytes = GroupMessage::begin(Kind::kDeclined, path, iteration, group);
  write_contribution(bytes, metrics);
  links_.send(owner, bytes.take());
}

bool GroupAsker::some_lent(int path, bool with_credit) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(lent_, [&](const auto& lent) {
    return std::get<0>(lent.first) == path && (lent.second.credit.tokens() > 0) == with_credit;
  });
}

// Without the lock it goes back: whoever waits for it is told then.
void GroupAsker::give_up_credit(int path) {
  std::vector<Credit> given_up;
  const std::lock_guard lock(mutex_);
  for (auto& [under, lent] : lent_)
    if (std::get<0>(under) == path) given_up.push_back(std::exchange(lent.credit, {}));
}

// The owner has it. Without the lock the credit goes back, as above.
void GroupAsker::be_gone(const Under& under) {
  Lent gone;
  {
    const std::lock_guard lock(mutex_);
    if (auto lent = lent_.extract(under)) gone = std::move(lent.mapped());
  }
  tell_bytes(-gone.bytes);
}

void GroupAsker::tell_bytes(int64_t bytes) const {
  if (events_.holds) events_.holds(bytes);
}

void GroupAsker::be_given(int owner, const GroupMessage& group, ByteReader& rest) {
  const auto arrived = [this, path = group.path, owner](const Parcel& parcel) {
    be_answered(path, {.owner = owner, .group = group_of(parcel)});
  };
  links_.receive(owner, links_.prompt_key(group.path, group.iteration, group.number), rest.whole_number(), arrived);
}

void GroupAsker::be_refused(int owner, const GroupMessage& question, ByteReader& rest) {
  const OwnersSeen::Offer asked{.owner = owner, .round = question.round(), .only_again = rest.number<uint8_t>() == 1};
  if (events_.refused) events_.refused(question.path, asked);
  be_answered(question.path, {.owner = owner, .group = {}});
}

void GroupAsker::be_answered(int path, Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_.at(static_cast<size_t>(path)) = std::move(answer);
}

void GroupAsker::hear_news(int owner, const GroupMessage& of, ByteReader& rest) {
  OwnerNews news{.round = of.round()};
  for (bool* flag : {&news.has_groups, &news.has_again, &news.is_over, &news.ends_early}) *flag = rest.number<uint8_t>() == 1;
  if (events_.news) events_.news(of.path, owner, news);
}

void GroupAsker::hear_end_behind(const GroupMessage& last) {
  if (events_.ends_behind) events_.ends_behind(last.iteration);
}

void GroupAsker::forget() {
  std::map<Under, Lent> lent;
  const std::lock_guard lock(mutex_);
  lent.swap(lent_);
}

}  // namespace sluice::engine
