#include "engine/schedule/mutual_help.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "engine/ranks/group_parcel.h"

namespace sluice::engine {
namespace {

enum class Kind : uint8_t {
  kAsk,       // path, iteration, round
  kNone,      // path
  kGive,      // path, iteration, group, bytes of the prompt
  kMade,      // path, iteration, group, tokens, bytes of the group
  kDeclined,  // path, iteration, group
};

ByteWriter message_of(Kind kind, int path) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(kind));
  bytes.number(int64_t{path});
  return bytes;
}

}  // namespace

MutualHelp::MutualHelp(const Plan& plan, RankLinks links, std::function<void()> changed)
    : links_(links), changed_(std::move(changed)) {
  for (const PlanPath& path : plan.paths) paths_.push_back({.name = plan.nodes[static_cast<size_t>(path.source)].name});
}

void MutualHelp::listen() {
  links_.mail.receive(Mail::Channel::kGroups, [self = shared_from_this()](int from, const std::string& message) {
    self->take_in([&] { self->hear(from, message); });
  });
}

MutualHelp::Path& MutualHelp::path_of(int path) { return paths_.at(static_cast<size_t>(path)); }

ParcelKey MutualHelp::key_of(const char* what, int path, int64_t iteration, int64_t group) const {
  return {.edge = path_of(path).name + ": " + what, .iteration = iteration, .number = group};
}

void MutualHelp::send(int to, std::string message) { links_.mail.send(to, Mail::Channel::kGroups, std::move(message)); }

void MutualHelp::ask(int path, int owner, Place place) {
  ByteWriter bytes = message_of(Kind::kAsk, path);
  bytes.number(place.iteration);
  bytes.number(place.round);
  send(owner, bytes.take());
}

std::optional<MutualHelp::Answer> MutualHelp::take_answer(int path) {
  const std::lock_guard lock(mutex_);
  return std::exchange(path_of(path).answer, std::nullopt);
}

void MutualHelp::give_back(int path, int owner, const Group& group, Credit credit) {
  const Under under{path, group.iteration, group.index};
  {
    const std::lock_guard lock(mutex_);
    lent_.emplace(under, std::move(credit));
  }
  Parcel parcel = parcel_of(group);
  ByteWriter bytes = message_of(Kind::kMade, path);
  bytes.number(group.iteration);
  bytes.number(group.index);
  bytes.number(static_cast<int64_t>(group.layout.tokens()));
  bytes.number(credit_bytes(parcel));
  links_.parcels.send(owner, key_of("made", path, group.iteration, group.index), std::move(parcel),
                      [self = shared_from_this(), under] { self->take_in([&] { self->drop_credit(under); }); });
  send(owner, bytes.take());
}

void MutualHelp::decline(int path, int owner, int64_t iteration, int64_t group) {
  ByteWriter bytes = message_of(Kind::kDeclined, path);
  bytes.number(iteration);
  bytes.number(group);
  send(owner, bytes.take());
}

// Without the lock the credit goes back: whoever waits for it is told then.
void MutualHelp::drop_credit(const Under& under) {
  Credit credit;
  const std::lock_guard lock(mutex_);
  if (auto lent = lent_.extract(under)) credit = std::move(lent.mapped());
}

std::optional<MutualHelp::Asker> MutualHelp::asker_up_to(int path, Place place) {
  const std::lock_guard lock(mutex_);
  std::deque<Asker>& askers = path_of(path).askers;
  const auto first = std::ranges::find_if(askers, [&](const Asker& asker) { return asker.place <= place; });
  if (first == askers.end()) return std::nullopt;
  const Asker asker = *first;
  askers.erase(first);
  return asker;
}

void MutualHelp::give(int path, const Asker& asker, const Group& prompt) {
  Parcel parcel = parcel_of(prompt);
  ByteWriter bytes = message_of(Kind::kGive, path);
  bytes.number(prompt.iteration);
  bytes.number(prompt.index);
  bytes.number(credit_bytes(parcel));
  links_.parcels.send(asker.rank, key_of("to be made", path, prompt.iteration, prompt.index), std::move(parcel), {});
  send(asker.rank, bytes.take());
}

void MutualHelp::refuse(int path, const Asker& asker) { send(asker.rank, message_of(Kind::kNone, path).take()); }

std::optional<MutualHelp::Made> MutualHelp::take_made(int path) {
  const std::lock_guard lock(mutex_);
  std::deque<Made>& made = path_of(path).made;
  if (made.empty()) return std::nullopt;
  const Made first = made.front();
  made.pop_front();
  return first;
}

std::optional<int64_t> MutualHelp::take_declined(int path) {
  const std::lock_guard lock(mutex_);
  std::deque<int64_t>& declined = path_of(path).declined;
  if (declined.empty()) return std::nullopt;
  const int64_t first = declined.front();
  declined.pop_front();
  return first;
}

void MutualHelp::fetch(int path, int64_t iteration, const Made& made) {
  const auto arrived = [self = shared_from_this(), path](const Parcel& parcel) {
    self->take_in([&] {
      Group group = group_of(parcel);
      const std::lock_guard lock(self->mutex_);
      self->path_of(path).fetched.push_back(std::move(group));
    });
  };
  links_.parcels.receive(made.rank, key_of("made", path, iteration, made.group), made.bytes, arrived);
}

std::optional<Group> MutualHelp::take_fetched(int path) {
  const std::lock_guard lock(mutex_);
  std::deque<Group>& fetched = path_of(path).fetched;
  if (fetched.empty()) return std::nullopt;
  Group first = std::move(fetched.front());
  fetched.pop_front();
  return first;
}

bool MutualHelp::has_news(int path, Place place) const {
  const std::lock_guard lock(mutex_);
  const Path& of = path_of(path);
  const auto is_due = [&](const Asker& asker) { return asker.place <= place; };
  return of.answer || !of.made.empty() || !of.declined.empty() || !of.fetched.empty() || std::ranges::any_of(of.askers, is_due);
}

void MutualHelp::say_none_left(int path, Place place) {
  {
    const std::lock_guard lock(mutex_);
    path_of(path).none_left = place;
  }
  while (const auto asker = asker_up_to(path, place)) refuse(path, *asker);
}

void MutualHelp::expect_early_ends() { links_.parcels.expect_early_ends(); }

void MutualHelp::forget() {
  std::map<Under, Credit> lent;
  {
    const std::lock_guard alive(lifetime_);
    over_ = true;
  }
  const std::lock_guard lock(mutex_);
  lent.swap(lent_);
}

// On the threads of mail and parcels. The driver stays as long as this takes.
void MutualHelp::take_in(const std::function<void()>& what) {
  const std::lock_guard alive(lifetime_);
  if (over_) return;
  what();
  changed_();
}

void MutualHelp::hear(int from, const std::string& message) {
  ByteReader bytes(message);
  const auto kind = static_cast<Kind>(bytes.number<uint8_t>());
  const auto path = static_cast<int>(bytes.whole_number());
  if (kind == Kind::kNone) return be_answered(path, {.owner = from, .group = {}});
  const int64_t iteration = bytes.whole_number(), number = bytes.whole_number();
  if (kind == Kind::kAsk) return be_asked(path, {.rank = from, .place = {.iteration = iteration, .round = number}});
  if (kind == Kind::kGive) return expect_prompt(path, from, key_of("to be made", path, iteration, number), bytes.whole_number());
  if (kind == Kind::kDeclined) {
    const std::lock_guard lock(mutex_);
    return path_of(path).declined.push_back(number);
  }
  SLUICE_CHECK(kind == Kind::kMade, "a message about groups that is none");
  Made made{.group = number, .rank = from};
  made.tokens = bytes.whole_number();
  made.bytes = bytes.whole_number();
  const std::lock_guard lock(mutex_);
  path_of(path).made.push_back(made);
}

void MutualHelp::be_answered(int path, Answer answer) {
  const std::lock_guard lock(mutex_);
  path_of(path).answer = std::move(answer);
}

void MutualHelp::be_asked(int path, const Asker& asker) {
  {
    const std::lock_guard lock(mutex_);
    if (path_of(path).none_left < asker.place) return path_of(path).askers.push_back(asker);
  }
  refuse(path, asker);
}

void MutualHelp::expect_prompt(int path, int owner, ParcelKey key, int64_t bytes) {
  const auto arrived = [self = shared_from_this(), path, owner](const Parcel& parcel) {
    self->take_in([&] { self->be_answered(path, {.owner = owner, .group = group_of(parcel)}); });
  };
  links_.parcels.receive(owner, std::move(key), bytes, arrived);
}

}  // namespace sluice::engine
