#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "comm/weights/publication_exchange.h"

namespace sluice::comm {
namespace {

constexpr int64_t kMostWord = 64;  // bytes of an acknowledgement

std::string word_of(uint32_t value) {
  ByteWriter word;
  word.number(value);
  return word.take();
}

uint32_t value_of(const engine::Parcel& word) { return ByteReader(word.header).number<uint32_t>(); }

}  // namespace

void PublicationExchange::lose(int rank) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(losses_.ranks[rank], ReceiverLosses::kNever) == ReceiverLosses::kNever) return;
  std::vector<int64_t> numbers;
  for (const auto& [number, version] : versions_) numbers.push_back(number);
  for (const int64_t number : numbers) {
    be_heard(number, rank);
    if (is_owner_ && versions_.contains(number)) confirm_if_all_have(number);
  }
}

void PublicationExchange::take_back(int rank, int64_t first_version) {
  const std::lock_guard lock(mutex_);
  SLUICE_CHECK(versions_.empty() || versions_.rbegin()->first < first_version,
               text_of(first_version) + " has begun without rank " + std::to_string(rank));
  losses_.ranks[rank] = first_version;
}

void PublicationExchange::acknowledge(int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = versions_.find(number);
  SLUICE_CHECK(is_receiver_ && found != versions_.end() && found->second.has_landed,
               text_of(number) + " is acknowledged before it has landed");
  SLUICE_CHECK(!std::exchange(found->second.acknowledged, true), text_of(number) + " is acknowledged twice");
  const uint32_t checksum = found->second.checksum();
  for (const int owner : plan_.owners())
    if (owner != rank_) parcels_.send(owner, word_key(number, rank_, ParcelOf::kAcknowledged), {word_of(checksum), {}}, {});
  if (is_owner_) take_acknowledgement(number, rank_, checksum);
}

VersionOnItsWay& PublicationExchange::version_of(int64_t number) {
  SLUICE_CHECK(number >= next_open_, text_of(number) + " is open already");
  const auto [found, is_new] = versions_.try_emplace(number);
  VersionOnItsWay& version = found->second;
  if (!is_new) return version;
  version.told.version = number;
  version.told.bytes = static_cast<int64_t>(plan_.layout().bytes());
  version.checksums.resize(plan_.pieces().size());
  version.missing = static_cast<size_t>(std::ranges::count_if(plan_.pieces(), [&](const auto& piece) { return brings(piece); }));
  version.not_free = version.not_shared = {landings_.sharers().begin(), landings_.sharers().end()};
  listen_to_sharers(number);
  for (const int owner : plan_.owners())
    listen(owner, word_key(number, owner, ParcelOf::kConfirmed),
           [=, this](const engine::Parcel& word) { take_confirmation(number, Confirmation::of(word)); });
  for (const int receiver : is_owner_ ? plan_.layout().receivers : std::vector<int>())
    if (!losses_.is_lost(receiver, number))
      listen(receiver, word_key(number, receiver, ParcelOf::kAcknowledged),
             [=, this](const engine::Parcel& word) { take_acknowledgement(number, receiver, value_of(word)); });
  return version;
}

void PublicationExchange::listen_to_sharers(int64_t number) {
  for (const int sharer : landings_.sharers()) {
    listen(sharer, word_key(number, sharer, ParcelOf::kFree),
           [=, this](const engine::Parcel& word) { take_free(number, sharer, value_of(word)); });
    listen(sharer, word_key(number, sharer, ParcelOf::kShare), [=, this](const engine::Parcel&) { take_share(number, sharer); });
  }
}

void PublicationExchange::tell_sharers(int64_t number, ParcelOf what, uint32_t value) {
  for (const int sharer : landings_.sharers())
    if (sharer != rank_) parcels_.send(sharer, word_key(number, rank_, what), {word_of(value), {}}, {});
}

void PublicationExchange::listen(int rank, engine::ParcelKey key, std::function<void(const engine::Parcel& word)> heard) {
  if (rank == rank_) return;
  parcels_.receive(rank, std::move(key), kMostWord,
                   [self = shared_from_this(), heard = std::move(heard)](const engine::Parcel& word) {
                     const std::lock_guard lock(self->mutex_);
                     heard(word);
                   });
}

void PublicationExchange::take_acknowledgement(int64_t number, int receiver, uint32_t checksum) {
  VersionOnItsWay& version = versions_.at(number);
  auto& acknowledgements = version.acknowledgements;
  for (const auto& [other, its] : acknowledgements) {
    if (its == checksum) continue;
    throw UserError("rank " + std::to_string(receiver) + " has another " + text_of(number) + " than rank " +
                        std::to_string(other) + ": their checksums differ",
                    "look for faults of the memory of both machines");
  }
  if (acknowledgements.empty()) version.first_acknowledgement = version.seconds();
  acknowledgements.emplace(receiver, checksum);
  version.slowest = receiver;
  confirm_if_all_have(number);
}

void PublicationExchange::confirm_if_all_have(int64_t number) {
  VersionOnItsWay& version = versions_.at(number);
  const auto has = [&](int receiver) { return losses_.is_lost(receiver, number) || version.acknowledgements.contains(receiver); };
  if (version.confirmation || !std::ranges::all_of(plan_.layout().receivers, has)) return;
  const double now = version.seconds();
  version.confirmation = Confirmation{.slowest = static_cast<uint32_t>(version.slowest),
                                      .seconds = now - version.first_offer,
                                      .slowest_seconds = now - version.first_acknowledgement};
  confirm(number, version);
}

void PublicationExchange::confirm(int64_t number, VersionOnItsWay& version) {
  for (const int rank : plan_.ranks())
    if (rank != rank_ && !losses_.is_lost(rank, number)) version.unheard.insert(rank);
  if (version.unheard.empty()) return take_confirmation(number, *version.confirmation);
  for (const int rank : version.unheard) {
    parcels_.send(rank, word_key(number, rank_, ParcelOf::kConfirmed), {version.confirmation->word(), {}},
                  [=, this, self = shared_from_this()] {
                    const std::lock_guard lock(mutex_);
                    be_heard(number, rank);
                  });
  }
}

void PublicationExchange::be_heard(int64_t number, int rank) {
  const auto version = versions_.find(number);
  if (version == versions_.end() || version->second.unheard.erase(rank) == 0 || !version->second.unheard.empty()) return;
  take_confirmation(number, *version->second.confirmation);
}

void PublicationExchange::take_confirmation(int64_t number, Confirmation confirmation) {
  VersionOnItsWay& version = versions_.at(number);
  if (version.confirmations++ == 0 || confirmation.seconds > version.told.published_seconds) {
    version.told.published_seconds = confirmation.seconds;
    version.told.slowest_receiver = static_cast<int>(confirmation.slowest);
    version.told.slowest_seconds = confirmation.slowest_seconds;
  }
  while (!versions_.empty() && versions_.begin()->first == next_open_ &&
         versions_.begin()->second.confirmations == plan_.owners().size()) {
    engine::PublishedVersion told = versions_.begin()->second.told;
    told.opened_seconds = versions_.begin()->second.seconds();
    versions_.erase(versions_.begin());
    ++next_open_;
    if (events_.opened) tell([this, told] { events_.opened(told); });
  }
}

void PublicationExchange::tell(std::function<void()> event) {
  parcels_.post([self = shared_from_this(), event = std::move(event)] {
    const std::lock_guard lock(self->running_);
    if (!self->is_closed_) event();
  });
}

}  // namespace sluice::comm
