#include "tests/engine/ranks/publications_in_one_process.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::engine::testing {
namespace {

class Memory final : public Landing {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  mutable std::vector<std::byte> bytes_;
};

}  // namespace

class PublicationsInOneProcess::Impl {
 public:
  class OfRank;
  class Member;

  Impl(int size, uint64_t seed, int64_t pause_us);
  ~Impl();

  Publications& rank(int index);

  // What is on its way of a model.
  struct Version {
    std::vector<std::byte> bytes;
    size_t offered = 0;
    std::set<size_t> begins;                           // of what is offered
    std::map<int, std::shared_ptr<Landing>> landings;  // by receiver, where it has not landed
    std::set<int> landed, acknowledged;
    bool opens = false;
    int slowest = 0;
    std::chrono::steady_clock::time_point offered_at, acknowledged_at;  // first
  };
  struct Of {
    PublicationLayout layout;
    std::map<int, Member*> members;  // by rank
    std::map<int64_t, Version> versions;
    std::map<int, int64_t> next_received;
  };

  void join(int rank, Member& member, PublicationLayout layout);
  void leave(int rank, const std::string& model);
  void offer(int rank, const std::string& model, int64_t version, Range range, const std::byte* bytes);
  void receive(int rank, const std::string& model, int64_t version, std::shared_ptr<Landing> into);
  void acknowledge(int rank, const std::string& model, int64_t version);
  void lose(int rank);
  void take_back(int rank, int64_t first_version);

 private:
  struct Event {
    int rank = 0;
    std::string model;
    int64_t version = 0;
    bool opens = false;
    PublishedVersion told = {};
  };

  bool is_lost(int rank, int64_t version) const { return lost_.contains(rank) && version < lost_.at(rank); }
  void land_all(const std::string& model, int64_t version);
  void open_if_all_have(const std::string& model, int64_t version);
  void post(Event event);
  void run();

  std::mutex running_;  // while a member is told something
  std::mutex mutex_;    // guards what follows
  std::condition_variable changed_;
  std::map<std::string, Of> models_;
  std::deque<Event> events_;
  std::map<int, int64_t> lost_;  // and from which version on they are there again
  RandomStream random_;
  const int64_t pause_us_;
  bool over_ = false;
  std::vector<std::unique_ptr<OfRank>> ranks_;
  std::jthread thread_;
};

class PublicationsInOneProcess::Impl::Member final : public Publication {
 public:
  Member(Impl& impl, int rank, PublicationLayout layout, Events events)
      : impl_(impl), rank_(rank), model_(layout.model), bytes_(layout.bytes()), events_(std::move(events)) {
    impl_.join(rank_, *this, std::move(layout));
  }
  ~Member() override { impl_.leave(rank_, model_); }

  std::vector<Range> stretches(Range range) const override { return {range}; }
  void offer(int64_t version, Range range, std::shared_ptr<const std::byte> bytes, std::vector<uint32_t> /*checksums*/) override {
    impl_.offer(rank_, model_, version, range, bytes.get());
  }
  std::shared_ptr<std::byte> new_source(size_t bytes) override {
    const auto memory = std::make_shared<std::vector<std::byte>>(bytes);
    return {memory, memory->data()};
  }
  std::shared_ptr<Landing> new_landing() override { return std::make_shared<Memory>(bytes_); }
  void receive(int64_t version, std::shared_ptr<Landing> into) override {
    impl_.receive(rank_, model_, version, std::move(into));
  }
  void acknowledge(int64_t version) override { impl_.acknowledge(rank_, model_, version); }

  const Events& events() const { return events_; }

 private:
  Impl& impl_;
  const int rank_;
  const std::string model_;
  const size_t bytes_;
  const Events events_;
};

class PublicationsInOneProcess::Impl::OfRank final : public Publications {
 public:
  OfRank(Impl& impl, int rank) : impl_(impl), rank_(rank) {}
  std::unique_ptr<Publication> publication(PublicationLayout layout, Publication::Events events) override {
    return std::make_unique<Member>(impl_, rank_, std::move(layout), std::move(events));
  }
  void lose(int rank) override { impl_.lose(rank); }
  void take_back(int rank, int64_t first_version) override { impl_.take_back(rank, first_version); }

 private:
  Impl& impl_;
  const int rank_;
};

PublicationsInOneProcess::Impl::Impl(int size, uint64_t seed, int64_t pause_us) : random_(seed, 11), pause_us_(pause_us) {
  for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<OfRank>(*this, rank));
  thread_ = std::jthread([this] { run(); });
}

PublicationsInOneProcess::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
}

Publications& PublicationsInOneProcess::Impl::rank(int index) { return *ranks_.at(static_cast<size_t>(index)); }

void PublicationsInOneProcess::Impl::join(int rank, Member& member, PublicationLayout layout) {
  const std::lock_guard lock(mutex_);
  Of& of = models_[layout.model];
  SLUICE_CHECK(of.members.emplace(rank, &member).second, "two publications of one model on a rank");
  of.next_received[rank] = layout.first_version;
  of.layout = std::move(layout);
}

void PublicationsInOneProcess::Impl::leave(int rank, const std::string& model) {
  const std::lock_guard running(running_);
  const std::lock_guard lock(mutex_);
  models_.at(model).members.erase(rank);
}

void PublicationsInOneProcess::Impl::offer(int rank, const std::string& model, int64_t number, Range range,
                                           const std::byte* bytes) {
  const std::lock_guard lock(mutex_);
  Of& of = models_.at(model);
  const auto is_this = [&](const OwnedBytes& owned) { return owned.owner == rank && owned.range.begin == range.begin; };
  const bool is_own =
      std::ranges::any_of(of.layout.buckets, [&](const auto& bucket) { return std::ranges::any_of(bucket, is_this); });
  Version& version = of.versions[number];
  SLUICE_CHECK(is_own && version.begins.insert(range.begin).second, "a range that is not the rank's, or comes twice");
  if (version.offered == 0) version.offered_at = std::chrono::steady_clock::now();
  version.bytes.resize(of.layout.bytes());
  std::memcpy(version.bytes.data() + range.begin, bytes, range.size());
  version.offered += range.size();
  land_all(model, number);
}

void PublicationsInOneProcess::Impl::receive(int rank, const std::string& model, int64_t number, std::shared_ptr<Landing> into) {
  const std::lock_guard lock(mutex_);
  Of& of = models_.at(model);
  SLUICE_CHECK(of.next_received.at(rank)++ == number, "a version is received out of order");
  of.versions[number].landings[rank] = std::move(into);
  land_all(model, number);
}

void PublicationsInOneProcess::Impl::land_all(const std::string& model, int64_t number) {
  Of& of = models_.at(model);
  Version& version = of.versions.at(number);
  if (version.offered < of.layout.bytes()) return;
  for (const auto& [rank, landing] : std::exchange(version.landings, {})) {
    std::memcpy(landing->bytes().data(), version.bytes.data(), version.bytes.size());
    version.landed.insert(rank);
    post({rank, model, number, /*opens=*/false});
  }
}

void PublicationsInOneProcess::Impl::acknowledge(int rank, const std::string& model, int64_t number) {
  const std::lock_guard lock(mutex_);
  Of& of = models_.at(model);
  Version& version = of.versions.at(number);
  SLUICE_CHECK(version.landed.contains(rank) && version.acknowledged.insert(rank).second, "a version that has not landed");
  const auto now = std::chrono::steady_clock::now();
  if (version.acknowledged.size() == 1) version.acknowledged_at = now;
  version.slowest = rank;
  open_if_all_have(model, number);
}

void PublicationsInOneProcess::Impl::open_if_all_have(const std::string& model, int64_t number) {
  Of& of = models_.at(model);
  Version& version = of.versions.at(number);
  const auto has = [&](int receiver) { return is_lost(receiver, number) || version.acknowledged.contains(receiver); };
  if (version.opens || version.offered < of.layout.bytes() || !std::ranges::all_of(of.layout.receivers, has)) return;
  version.opens = true;
  const auto now = std::chrono::steady_clock::now();
  const auto seconds_since = [&](auto begin) { return std::chrono::duration<double>(now - begin).count(); };
  PublishedVersion told{.version = number,
                        .link_bytes_per_second = 1e9,
                        .published_seconds = seconds_since(version.offered_at),
                        .slowest_receiver = version.slowest,
                        .slowest_seconds = seconds_since(version.acknowledged_at)};
  for (const auto& [member, publication] : of.members) {
    if (is_lost(member, number)) continue;
    told.bytes = static_cast<int64_t>(of.layout.bytes());
    told.bytes_received = version.landed.contains(member) ? static_cast<int64_t>(of.layout.bytes()) : 0;
    post({member, model, number, /*opens=*/true, told});
  }
}

// In order, as versions open.
void PublicationsInOneProcess::Impl::lose(int rank) {
  const std::lock_guard lock(mutex_);
  lost_[rank] = std::numeric_limits<int64_t>::max();
  for (const auto& [model, of] : models_)
    for (const auto& [number, version] : of.versions) open_if_all_have(model, number);
}

void PublicationsInOneProcess::Impl::take_back(int rank, int64_t first_version) {
  const std::lock_guard lock(mutex_);
  for (const auto& [model, of] : models_)
    for (const auto& [number, version] : of.versions)
      SLUICE_CHECK(number < first_version || version.offered == 0, "a version has begun without a rank that is to have it");
  lost_[rank] = first_version;
}

void PublicationsInOneProcess::Impl::post(Event event) {
  events_.push_back(std::move(event));
  changed_.notify_all();
}

// In any order, but for the versions that open on a rank, which do so one after the other.
void PublicationsInOneProcess::Impl::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return over_ || !events_.empty(); });
    if (over_) return;
    const auto picked = events_.begin() + static_cast<std::ptrdiff_t>(random_.below(events_.size()));
    const auto is_alike = [&](const Event& event) {
      return event.rank == picked->rank && event.opens == picked->opens && event.model == picked->model;
    };
    const auto first = std::ranges::find_if(events_, is_alike);
    const Event event = *first;
    events_.erase(first);
    const auto pause = pause_us_ > 0 ? static_cast<int64_t>(random_.below(static_cast<uint64_t>(pause_us_))) : 0;
    lock.unlock();
    if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
    {
      const std::lock_guard running(running_);
      lock.lock();
      const auto& members = models_.at(event.model).members;
      const auto member = members.find(event.rank);
      const Member* const told = member == members.end() ? nullptr : member->second;
      lock.unlock();
      if (told != nullptr && event.opens && told->events().opened) told->events().opened(event.told);
      if (told != nullptr && !event.opens) told->events().landed(event.version, 0);
    }
    lock.lock();
  }
}

PublicationsInOneProcess::PublicationsInOneProcess(int size, uint64_t seed, int64_t pause_us)
    : impl_(std::make_shared<Impl>(size, seed, pause_us)) {}

PublicationsInOneProcess::~PublicationsInOneProcess() = default;

Publications& PublicationsInOneProcess::rank(int index) { return impl_->rank(index); }

void PublicationsInOneProcess::lose(int rank) { impl_->lose(rank); }

}  // namespace sluice::engine::testing
