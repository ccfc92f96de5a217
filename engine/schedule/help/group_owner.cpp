#include "engine/schedule/help/group_owner.h"

#include <algorithm>
#include <utility>

#include "engine/ranks/contribution_bytes.h"
#include "engine/ranks/group_parcel.h"

namespace sluice::engine {

std::optional<GroupOwner::Question> GroupOwner::take_question(int path, Round round) {
  const std::lock_guard lock(mutex_);
  std::deque<Question>& questions = path_of(path).questions;
  const auto first = std::ranges::find_if(questions, [&](const Question& question) { return question.round <= round; });
  if (first == questions.end()) return std::nullopt;
  const Question question = *first;
  questions.erase(first);
  return question;
}

void GroupOwner::give(int path, const Question& question, const Group& prompt) {
  Parcel parcel = parcel_of(prompt);
  ByteWriter bytes = GroupMessage::begin(Kind::kGive, path, prompt.iteration, prompt.index);
  bytes.number(credit_bytes(parcel));
  links_.send(question.rank, links_.prompt_key(path, prompt.iteration, prompt.index), std::move(parcel));
  links_.send(question.rank, bytes.take());
}

void GroupOwner::refuse(int path, const Question& question) {
  ByteWriter bytes = GroupMessage::begin(Kind::kNone, path, question.round);
  bytes.number(static_cast<uint8_t>(question.only_again));
  links_.send(question.rank, bytes.take());
}

void GroupOwner::say_none_left(int path, Round round) {
  {
    const std::lock_guard lock(mutex_);
    path_of(path).none_left = round;
  }
  while (const auto question = take_question(path, round)) refuse(path, *question);
}

void GroupOwner::say_some_left(int path, Round round) {
  const std::lock_guard lock(mutex_);
  Round& none_left = path_of(path).none_left;
  if (none_left == round) none_left = {.iteration = round.iteration, .number = round.number - 1};
}

void GroupOwner::fetch(int path, int64_t iteration, const Made& made) {
  const auto arrived = [this, path, from = made.rank](const Parcel& parcel) {
    Group group = group_of(parcel);
    const std::lock_guard lock(mutex_);
    if (!lost_.contains(from)) path_of(path).fetched.push_back(std::move(group));
  };
  links_.receive(made.rank, links_.made_key(path, iteration, made.group), made.bytes, arrived);
}

bool GroupOwner::has_news(int path, Round round) const {
  const std::lock_guard lock(mutex_);
  const Path& of = path_of(path);
  if (!of.made.empty() || !of.declined.empty() || !of.fetched.empty() || !of.lost.empty()) return true;
  return std::ranges::any_of(of.questions, [&](const Question& question) { return question.round <= round; });
}

void GroupOwner::announce(const std::vector<int>& samplers, int path, const OwnerNews& news) {
  ByteWriter bytes = GroupMessage::begin(Kind::kNews, path, news.round);
  for (const bool flag : {news.has_groups, news.has_again, news.is_over, news.ends_early})
    bytes.number(static_cast<uint8_t>(flag));
  const std::string message = bytes.take();
  const std::lock_guard lock(mutex_);
  path_of(path).announced = message;
  for (const int sampler : samplers) links_.send(sampler, message);
}

void GroupOwner::announce_end_behind(const std::vector<int>& samplers, int64_t last) {
  for (const int sampler : samplers) links_.send(sampler, GroupMessage::begin(Kind::kEndBehind, 0, last, 0).take());
}

// What has come of it and was not fetched is gone with it.
void GroupOwner::lose(int rank) {
  links_.take_in([&] {
    const std::lock_guard lock(mutex_);
    if (!lost_.insert(rank).second) return;
    const auto is_of_rank = [rank](const auto& one) { return one.rank == rank; };
    for (Path& path : paths_) {
      std::erase_if(path.questions, is_of_rank);
      std::erase_if(path.made, is_of_rank);
      std::erase_if(path.declined, is_of_rank);
      path.lost.push_back(rank);
    }
  });
}

// With the lock: it hears of nothing that was announced before this.
void GroupOwner::take_back(int rank) {
  const std::lock_guard lock(mutex_);
  lost_.erase(rank);
  for (const Path& path : paths_)
    if (!path.announced.empty()) links_.send(rank, path.announced);
}

// With the lock a refusal is on its way before anybody says that there are some left after all.
void GroupOwner::be_asked(int from, const GroupMessage& message, ByteReader& rest) {
  const Question question{.rank = from, .round = message.round(), .only_again = rest.number<uint8_t>() == 1};
  const std::lock_guard lock(mutex_);
  if (lost_.contains(from)) return;
  Path& path = path_of(message.path);
  if (path.none_left < question.round) return path.questions.push_back(question);
  refuse(message.path, question);
}

void GroupOwner::hear_made(int from, const GroupMessage& group, ByteReader& rest) {
  Made made{.group = group.number, .rank = from};
  made.tokens = rest.whole_number();
  made.bytes = rest.whole_number();
  made.metrics = read_contribution(rest);
  keep(group.path, &Path::made, std::move(made));
}

void GroupOwner::hear_declined(int from, const GroupMessage& group, ByteReader& rest) {
  keep(group.path, &Path::declined, {.group = group.number, .rank = from, .metrics = read_contribution(rest)});
}

void GroupOwner::keep(int path, std::deque<Made> Path::*queue, Made made) {
  const std::lock_guard lock(mutex_);
  if (!lost_.contains(made.rank)) (path_of(path).*queue).push_back(std::move(made));
}

}  // namespace sluice::engine
