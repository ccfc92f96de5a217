#include "engine/schedule/help/group_links.h"

#include <utility>

namespace sluice::engine {

GroupLinks::GroupLinks(const Plan& plan, RankLinks links, std::function<void()> changed)
    : links_(links), changed_(std::move(changed)) {
  for (const PlanPath& path : plan.paths) sources_.push_back(plan.nodes[static_cast<size_t>(path.source)].name);
}

void GroupLinks::listen(Mail::Handler hear) {
  links_.mail.receive(Mail::Channel::kGroups,
                      [self = shared_from_this(), hear = std::move(hear)](int from, const std::string& message) {
                        self->take_in([&] { hear(from, message); });
                      });
}

void GroupLinks::send(int to, ParcelKey key, Parcel parcel, std::function<void()> there) {
  std::function<void()> done;
  if (there) done = [self = shared_from_this(), there = std::move(there)] { self->take_in(there); };
  links_.parcels.send(to, std::move(key), std::move(parcel), std::move(done));
}

void GroupLinks::receive(int from, ParcelKey key, int64_t bytes, Parcels::Arrived arrived) {
  links_.parcels.receive(from, std::move(key), bytes,
                         [self = shared_from_this(), arrived = std::move(arrived)](const Parcel& parcel) {
                           self->take_in([&] { arrived(parcel); });
                         });
}

ParcelKey GroupLinks::key_of(const char* what, int path, int64_t iteration, int64_t group) const {
  return {.edge = sources_.at(static_cast<size_t>(path)) + what, .iteration = iteration, .number = group};
}

void GroupLinks::take_in(const std::function<void()>& what) {
  const std::lock_guard alive(lifetime_);
  if (over_) return;
  what();
  changed_();
}

void GroupLinks::forget() {
  const std::lock_guard alive(lifetime_);
  over_ = true;
}

}  // namespace sluice::engine
