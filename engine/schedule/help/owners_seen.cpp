#include "engine/schedule/help/owners_seen.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::engine {

OwnersSeen::OwnersSeen(size_t paths, std::vector<int> owners, int64_t begun)
    : owners_(std::move(owners)), seen_(paths, std::vector<Owner>(owners_.size(), {.news = {.round = {.iteration = begun}}})) {}

std::optional<size_t> OwnersSeen::index_of(int owner) const {
  const auto found = std::ranges::find(owners_, owner);
  if (found == owners_.end()) return std::nullopt;
  return static_cast<size_t>(found - owners_.begin());
}

void OwnersSeen::take(int path, int owner, const OwnerNews& news) {
  const std::lock_guard lock(mutex_);
  if (const auto index = index_of(owner)) of(path)[*index] = {.news = news};
}

int64_t OwnersSeen::floor(int path) const {
  const std::lock_guard lock(mutex_);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Owner& owner : of(path)) least = std::min(least, owner.news.round.iteration);
  return least;
}

bool OwnersSeen::have_given_all_before(int path, int64_t iteration) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(of(path), [&](const Owner& owner) { return owner.has_given_all_before(iteration); });
}

bool OwnersSeen::is_over(int path) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(of(path), [](const Owner& owner) { return owner.news.is_over; });
}

std::optional<OwnersSeen::Offer> OwnersSeen::next(int path) const {
  const std::lock_guard lock(mutex_);
  std::optional<Offer> first;
  for (size_t i = 0; i < owners_.size(); ++i) {
    const OwnerNews& news = of(path)[i].news;
    if (news.has_groups && (!first || news.round.iteration < first->round.iteration)) first = Offer{owners_[i], news.round};
  }
  if (!first) return std::nullopt;
  const int64_t iteration = first->round.iteration;
  const bool earlier_are_given =
      std::ranges::all_of(of(path), [&](const Owner& owner) { return owner.has_given_all_before(iteration); });
  return earlier_are_given ? first : std::nullopt;
}

std::optional<OwnersSeen::Offer> OwnersSeen::next_again(int path) const {
  const int64_t earliest = floor(path);
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < owners_.size(); ++i) {
    const OwnerNews& news = of(path)[i].news;
    if (news.has_again && news.round.iteration == earliest)
      return Offer{.owner = owners_[i], .round = news.round, .only_again = true};
  }
  return std::nullopt;
}

bool OwnersSeen::some_offer(int path) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(of(path), [](const Owner& owner) { return owner.news.has_groups; });
}

// It may have told of another round meanwhile.
void OwnersSeen::refused(int path, const Offer& offer) {
  const std::lock_guard lock(mutex_);
  Owner& owner = of(path)[*index_of(offer.owner)];
  if (owner.news.round != offer.round) return;
  owner.news.has_again = false;
  if (offer.only_again) return;
  owner.news.has_groups = false;
  owner.none_left = true;
}

}  // namespace sluice::engine
