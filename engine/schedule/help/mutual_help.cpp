#include "engine/schedule/help/mutual_help.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "engine/ranks/contribution_bytes.h"
#include "engine/ranks/group_parcel.h"

namespace sluice::engine {
namespace {

enum class Kind : uint8_t {
  kAsk,        // path, iteration, round, whether only of those that were given before
  kNone,       // likewise, of the question
  kGive,       // path, iteration, group, bytes of the prompt
  kMade,       // path, iteration, group, tokens, bytes of the group, metrics
  kDeclined,   // path, iteration, group, metrics
  kNews,       // path, iteration, round, the flags of OwnerNews
  kEndBehind,  // 0, iteration, 0
};

ByteWriter message_of(Kind kind, int path, int64_t iteration, int64_t number) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(kind));
  for (const int64_t n : {int64_t{path}, iteration, number}) bytes.number(n);
  return bytes;
}

}  // namespace

MutualHelp::MutualHelp(const Plan& plan, RankLinks links, Events events) : links_(links), events_(std::move(events)) {
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

void MutualHelp::ask(int path, int owner, Place place, bool only_again) {
  ByteWriter bytes = message_of(Kind::kAsk, path, place.iteration, place.round);
  bytes.number(static_cast<uint8_t>(only_again));
  send(owner, bytes.take());
}

std::optional<MutualHelp::Answer> MutualHelp::take_answer(int path) {
  const std::lock_guard lock(mutex_);
  return std::exchange(path_of(path).answer, std::nullopt);
}

bool MutualHelp::has_answer(int path) const {
  const std::lock_guard lock(mutex_);
  return path_of(path).answer.has_value();
}

void MutualHelp::give_back(int path, int owner, const Group& group, Credit credit, const Contribution& metrics) {
  const Under under{path, group.iteration, group.index};
  Parcel parcel = parcel_of(group);
  const int64_t bytes_of_group = credit_bytes(parcel);
  {
    const std::lock_guard lock(mutex_);
    lent_.emplace(under, Lent{std::move(credit), bytes_of_group});
  }
  tell_bytes(bytes_of_group);
  ByteWriter bytes = message_of(Kind::kMade, path, group.iteration, group.index);
  bytes.number(static_cast<int64_t>(group.layout.tokens()));
  bytes.number(bytes_of_group);
  write_contribution(bytes, metrics);
  links_.parcels.send(owner, key_of("made", path, group.iteration, group.index), std::move(parcel),
                      [self = shared_from_this(), under] { self->take_in([&] { self->be_gone(under); }); });
  send(owner, bytes.take());
}

bool MutualHelp::some_lent(int path, bool with_credit) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(lent_, [&](const auto& lent) {
    return std::get<0>(lent.first) == path && (lent.second.credit.tokens() > 0) == with_credit;
  });
}

bool MutualHelp::has_credit(int path) const { return some_lent(path, true); }

bool MutualHelp::has_given_up_credit(int path) const { return some_lent(path, false); }

// Without the lock it goes back: whoever waits for it is told then.
void MutualHelp::give_up_credit(int path) {
  std::vector<Credit> given_up;
  const std::lock_guard lock(mutex_);
  for (auto& [under, lent] : lent_)
    if (std::get<0>(under) == path) given_up.push_back(std::exchange(lent.credit, {}));
}

void MutualHelp::decline(int path, int owner, int64_t iteration, int64_t group, const Contribution& metrics) {
  ByteWriter bytes = message_of(Kind::kDeclined, path, iteration, group);
  write_contribution(bytes, metrics);
  send(owner, bytes.take());
}

// The owner has it. Without the lock the credit goes back, as above.
void MutualHelp::be_gone(const Under& under) {
  Lent gone;
  {
    const std::lock_guard lock(mutex_);
    if (auto lent = lent_.extract(under)) gone = std::move(lent.mapped());
  }
  tell_bytes(-gone.bytes);
}

void MutualHelp::tell_bytes(int64_t bytes) const {
  if (events_.holds) events_.holds(bytes);
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
  ByteWriter bytes = message_of(Kind::kGive, path, prompt.iteration, prompt.index);
  bytes.number(credit_bytes(parcel));
  links_.parcels.send(asker.rank, key_of("to be made", path, prompt.iteration, prompt.index), std::move(parcel), {});
  send(asker.rank, bytes.take());
}

void MutualHelp::refuse(int path, const Asker& asker) {
  ByteWriter bytes = message_of(Kind::kNone, path, asker.place.iteration, asker.place.round);
  bytes.number(static_cast<uint8_t>(asker.only_again));
  send(asker.rank, bytes.take());
}

std::optional<MutualHelp::Made> MutualHelp::take_made(int path) {
  const std::lock_guard lock(mutex_);
  std::deque<Made>& made = path_of(path).made;
  if (made.empty()) return std::nullopt;
  Made first = std::move(made.front());
  made.pop_front();
  return first;
}

std::optional<MutualHelp::Made> MutualHelp::take_declined(int path) {
  const std::lock_guard lock(mutex_);
  std::deque<Made>& declined = path_of(path).declined;
  if (declined.empty()) return std::nullopt;
  Made first = std::move(declined.front());
  declined.pop_front();
  return first;
}

void MutualHelp::fetch(int path, int64_t iteration, const Made& made) {
  const auto arrived = [self = shared_from_this(), path, from = made.rank](const Parcel& parcel) {
    self->take_in([&] {
      Group group = group_of(parcel);
      const std::lock_guard lock(self->mutex_);
      if (!self->lost_.contains(from)) self->path_of(path).fetched.push_back(std::move(group));
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
  const bool has_come = of.answer || !of.made.empty() || !of.declined.empty() || !of.fetched.empty() || !of.lost.empty();
  return has_come || std::ranges::any_of(of.askers, is_due);
}

void MutualHelp::say_none_left(int path, Place place) {
  {
    const std::lock_guard lock(mutex_);
    path_of(path).none_left = place;
  }
  while (const auto asker = asker_up_to(path, place)) refuse(path, *asker);
}

void MutualHelp::say_some_left(int path, Place place) {
  const std::lock_guard lock(mutex_);
  Place& none_left = path_of(path).none_left;
  if (none_left == place) none_left = {.iteration = place.iteration, .round = place.round - 1};
}

void MutualHelp::announce(const std::vector<int>& samplers, int path, const OwnerNews& news) {
  ByteWriter bytes = message_of(Kind::kNews, path, news.place.iteration, news.place.round);
  for (const bool flag : {news.has_groups, news.has_again, news.is_over, news.ends_early})
    bytes.number(static_cast<uint8_t>(flag));
  const std::string message = bytes.take();
  const std::lock_guard lock(mutex_);
  path_of(path).announced = message;
  for (const int sampler : samplers) send(sampler, message);
}

void MutualHelp::announce_end_behind(const std::vector<int>& samplers, int64_t last) {
  for (const int sampler : samplers) send(sampler, message_of(Kind::kEndBehind, 0, last, 0).take());
}

// What has come of it and was not fetched is gone with it.
void MutualHelp::lose(int rank) {
  take_in([&] {
    const std::lock_guard lock(mutex_);
    if (!lost_.insert(rank).second) return;
    for (Path& path : paths_) {
      std::erase_if(path.askers, [rank](const Asker& asker) { return asker.rank == rank; });
      for (std::deque<Made>* made : {&path.made, &path.declined})
        std::erase_if(*made, [rank](const Made& m) { return m.rank == rank; });
      path.lost.push_back(rank);
    }
  });
}

// With the lock: it hears of nothing that was announced before this.
void MutualHelp::take_back(int rank) {
  const std::lock_guard lock(mutex_);
  lost_.erase(rank);
  for (const Path& path : paths_)
    if (!path.announced.empty()) send(rank, path.announced);
}

std::optional<int> MutualHelp::take_lost(int path) {
  const std::lock_guard lock(mutex_);
  std::deque<int>& lost = path_of(path).lost;
  if (lost.empty()) return std::nullopt;
  const int first = lost.front();
  lost.pop_front();
  return first;
}

void MutualHelp::expect_early_ends() { links_.parcels.expect_early_ends(); }

void MutualHelp::forget() {
  std::map<Under, Lent> lent;
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
  events_.changed();
}

void MutualHelp::hear(int from, const std::string& message) {
  ByteReader bytes(message);
  const auto kind = static_cast<Kind>(bytes.number<uint8_t>());
  const auto path = static_cast<int>(bytes.whole_number());
  const int64_t iteration = bytes.whole_number(), number = bytes.whole_number();
  const Place place{.iteration = iteration, .round = number};
  switch (kind) {
    case Kind::kAsk:
      return be_asked(path, {.rank = from, .place = place, .only_again = bytes.number<uint8_t>() == 1});
    case Kind::kNone:
      if (events_.refused) events_.refused(path, {.owner = from, .place = place, .only_again = bytes.number<uint8_t>() == 1});
      return be_answered(path, {.owner = from, .group = {}});
    case Kind::kGive:
      return expect_prompt(path, from, key_of("to be made", path, iteration, number), bytes.whole_number());
    case Kind::kMade:
    case Kind::kDeclined:
      return hear_made(path, {.group = number, .rank = from}, bytes, kind == Kind::kDeclined);
    case Kind::kNews:
      return hear_news(path, from, place, bytes);
    case Kind::kEndBehind:
      if (events_.ends_behind) events_.ends_behind(iteration);
      return;
  }
  throw InternalError("a message about groups that is none");
}

void MutualHelp::hear_news(int path, int from, Place place, ByteReader& bytes) {
  OwnerNews news{.place = place};
  for (bool* flag : {&news.has_groups, &news.has_again, &news.is_over, &news.ends_early}) *flag = bytes.number<uint8_t>() == 1;
  if (events_.news) events_.news(path, from, news);
}

void MutualHelp::hear_made(int path, Made made, ByteReader& bytes, bool is_declined) {
  if (!is_declined) {
    made.tokens = bytes.whole_number();
    made.bytes = bytes.whole_number();
  }
  made.metrics = read_contribution(bytes);
  const std::lock_guard lock(mutex_);
  if (lost_.contains(made.rank)) return;
  (is_declined ? path_of(path).declined : path_of(path).made).push_back(std::move(made));
}

void MutualHelp::be_answered(int path, Answer answer) {
  const std::lock_guard lock(mutex_);
  path_of(path).answer = std::move(answer);
}

// With the lock a refusal is on its way before anybody says that there are some left after all.
void MutualHelp::be_asked(int path, const Asker& asker) {
  const std::lock_guard lock(mutex_);
  if (lost_.contains(asker.rank)) return;
  if (path_of(path).none_left < asker.place) return path_of(path).askers.push_back(asker);
  refuse(path, asker);
}

void MutualHelp::expect_prompt(int path, int owner, ParcelKey key, int64_t bytes) {
  const auto arrived = [self = shared_from_this(), path, owner](const Parcel& parcel) {
    self->take_in([&] { self->be_answered(path, {.owner = owner, .group = group_of(parcel)}); });
  };
  links_.parcels.receive(owner, std::move(key), bytes, arrived);
}

}  // namespace sluice::engine
