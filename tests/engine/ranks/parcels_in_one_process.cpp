#include "tests/engine/ranks/parcels_in_one_process.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::engine::testing {
namespace {

constexpr const char* kHasEnded = "the other rank has ended";

std::string text_of_two(int from, int to) { return "from rank " + std::to_string(from) + " to rank " + std::to_string(to); }

}  // namespace

struct ParcelsInOneProcess::Between {
  struct Offer {
    Parcel parcel;
    std::function<void()> done;
  };
  struct Grant {
    int64_t most_bytes = 0;
    Parcels::Arrived arrived;
  };

  std::set<ParcelKey> offered_ever, granted_ever;
  std::map<ParcelKey, Offer> offers;  // without a grant
  std::map<ParcelKey, Grant> grants;  // without an offer
  std::set<ParcelKey> under_way;      // not arrived
  int64_t bytes = 0;
};

class ParcelsInOneProcess::Rank final : public Parcels {
 public:
  Rank(ParcelsInOneProcess& all, World world, uint64_t seed, int64_t pause_us)
      : all_(all), world_(world), pause_us_(pause_us), random_(seed, 78, static_cast<uint32_t>(world.rank)), thread_([this] {
          carry_out();
        }) {}
  ~Rank() override { close(); }

  World world() const override { return world_; }

  void send(int to, ParcelKey key, Parcel parcel, std::function<void()> done) override {
    check_other(to);
    SLUICE_CHECK(parcel.header.size() <= Parcel::kMostHeader, "a header that is too long");
    const std::lock_guard lock(all_.mutex_);
    if (is_over() || all_.is_lost(to) || all_.is_lost(world_.rank)) return;
    if (all_.has_left(to)) return all_.tell_left(world_.rank, to, key, kHasEnded);
    Between& between = all_.between_[{world_.rank, to}];
    if (!between.offered_ever.insert(key).second) return fail_twice(key, "offered", world_.rank, to);
    between.offers.emplace(key, Between::Offer{std::move(parcel), std::move(done)});
    all_.match(world_.rank, to, key);
  }

  void receive(int from, ParcelKey key, int64_t most_bytes, Arrived arrived) override {
    check_other(from);
    SLUICE_CHECK(arrived != nullptr, "a parcel that nobody takes");
    const std::lock_guard lock(all_.mutex_);
    if (is_over() || all_.is_lost(from) || all_.is_lost(world_.rank)) return;
    if (all_.has_left(from)) return all_.tell_left(from, world_.rank, key, kHasEnded);
    Between& between = all_.between_[{from, world_.rank}];
    if (!between.granted_ever.insert(key).second) return fail_twice(key, "granted", from, world_.rank);
    between.grants.emplace(key, Between::Grant{most_bytes, std::move(arrived)});
    all_.match(from, world_.rank, key);
  }

  void expect_early_ends() override {
    const std::lock_guard lock(all_.mutex_);
    expects_early_ends_ = true;
  }

  std::vector<ParcelTraffic> traffic() const override {
    const std::lock_guard lock(all_.mutex_);
    std::vector<ParcelTraffic> traffic(static_cast<size_t>(world_.size));
    for (const auto& [ranks, between] : all_.between_) {
      if (ranks.first == world_.rank) traffic[static_cast<size_t>(ranks.second)].bytes_sent = between.bytes;
      if (ranks.second == world_.rank) traffic[static_cast<size_t>(ranks.first)].bytes_received = between.bytes;
    }
    return traffic;
  }

  void close() override {
    std::vector<std::function<void()>> dropped;  // outside of the lock, as what was between
    std::vector<Between> between;
    {
      const std::lock_guard lock(all_.mutex_);
      if (!is_over() && !all_.is_lost(world_.rank)) all_.look_for_what_is_left(world_.rank);
      is_closed_ = true;
      dropped.swap(callbacks_);
      between = all_.take_between(world_.rank);
      came_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  void abandon() override {
    std::vector<std::function<void()>> dropped;  // outside of the lock
    const std::lock_guard lock(all_.mutex_);
    if (is_over() || all_.is_lost(world_.rank)) return;
    dropped.swap(callbacks_);
    all_.fail(std::make_exception_ptr(UserError("rank " + std::to_string(world_.rank) + " has closed its connection")));
  }

  // With the lock.
  bool is_closed() const { return is_closed_; }
  bool expects_early_ends() const { return expects_early_ends_; }
  void add(std::function<void()> callback) {
    if (is_closed_) return;
    callbacks_.push_back(std::move(callback));
    came_.notify_one();
  }
  void wake() { came_.notify_one(); }

 private:
  bool is_over() const { return is_closed_ || all_.is_over_; }

  void check_other(int rank) const {
    SLUICE_CHECK(0 <= rank && rank < world_.size && rank != world_.rank, "a parcel between a rank and none, or itself");
  }

  void fail_twice(const ParcelKey& key, const std::string& what, int from, int to) {
    all_.fail(std::make_exception_ptr(InternalError(text_of(key) + " is " + what + " twice " + text_of_two(from, to))));
  }

  void carry_out() {
    while (wait()) {
      pause();
      const std::function<void()> callback = any();
      if (!callback) return;
      try {
        callback();
      } catch (...) {
        const std::lock_guard lock(all_.mutex_);
        all_.fail(std::current_exception());
      }
    }
  }

  // Waits for: something to call. Ends when: there is, or all is over; false then.
  bool wait() {
    std::unique_lock lock(all_.mutex_);
    came_.wait(lock, [this] { return !callbacks_.empty() || is_over(); });
    return !is_over();
  }

  // Nothing: all is over.
  std::function<void()> any() {
    const std::lock_guard lock(all_.mutex_);
    if (is_over()) return {};
    std::swap(callbacks_[random_.below(callbacks_.size())], callbacks_.back());
    std::function<void()> callback = std::move(callbacks_.back());
    callbacks_.pop_back();
    return callback;
  }

  void pause() {
    if (pause_us_ == 0) return;
    const auto time = static_cast<int64_t>(random_.below(static_cast<uint64_t>(pause_us_)));
    if (time > pause_us_ / 2) std::this_thread::sleep_for(std::chrono::microseconds(time));
  }

  ParcelsInOneProcess& all_;
  const World world_;
  const int64_t pause_us_;
  RandomStream random_;           // of the thread
  std::condition_variable came_;  // with the mutex of all, which guards what follows
  std::vector<std::function<void()>> callbacks_;
  bool is_closed_ = false;
  bool expects_early_ends_ = false;
  std::thread thread_;  // last: it uses the rest
};

ParcelsInOneProcess::ParcelsInOneProcess(int size, uint64_t seed, int64_t pause_us) {
  for (int rank = 0; rank < size; ++rank)
    ranks_.push_back(std::make_unique<Rank>(*this, World{.rank = rank, .size = size}, seed, pause_us));
}

ParcelsInOneProcess::~ParcelsInOneProcess() { close(); }

Parcels& ParcelsInOneProcess::rank(int index) { return *ranks_.at(static_cast<size_t>(index)); }

void ParcelsInOneProcess::close() {
  for (const auto& rank : ranks_) rank->close();
}

void ParcelsInOneProcess::lose(int rank) {
  std::vector<Between> dropped;  // outside of the lock
  const std::lock_guard lock(mutex_);
  lost_.insert(rank);
  dropped = take_between(rank);
  for (auto& [ranks, between] : between_)
    if (ranks.first == rank || ranks.second == rank) between.under_way.clear();
}

void ParcelsInOneProcess::take_back(int rank) {
  const std::lock_guard lock(mutex_);
  lost_.erase(rank);
  ++incarnations_[rank];
  std::erase_if(between_, [rank](const auto& one) { return one.first.first == rank || one.first.second == rank; });
}

std::vector<std::exception_ptr> ParcelsInOneProcess::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

// With the lock: what is both offered and granted is brought to its receiver, and when it is there the sender hears of it.
void ParcelsInOneProcess::match(int from, int to, const ParcelKey& key) {
  Between& between = between_[{from, to}];
  const auto offered = between.offers.find(key);
  const auto granted = between.grants.find(key);
  if (offered == between.offers.end() || granted == between.grants.end()) return;
  const int64_t bytes = credit_bytes(offered->second.parcel);
  if (bytes > granted->second.most_bytes) {
    return fail(
        std::make_exception_ptr(InternalError(text_of(key) + " " + text_of_two(from, to) + " takes " + std::to_string(bytes) +
                                              " bytes, where " + std::to_string(granted->second.most_bytes) + " are granted")));
  }
  between.bytes += bytes;
  between.under_way.insert(key);
  ranks_[static_cast<size_t>(to)]->add([this, from, to, key, done = std::move(offered->second.done),
                                        parcel = std::move(offered->second.parcel), arrived = std::move(granted->second.arrived),
                                        of_from = incarnation(from), of_to = incarnation(to)]() mutable {
    const auto is_same = [&] {
      return incarnation(from) == of_from && incarnation(to) == of_to && !is_lost(from) && !is_lost(to);
    };
    {
      const std::lock_guard lock(mutex_);
      if (!is_same()) return;
      between_[{from, to}].under_way.erase(key);
    }
    arrived(std::move(parcel));
    if (!done) return;
    const std::lock_guard lock(mutex_);
    if (!is_same()) return;
    ranks_[static_cast<size_t>(from)]->add(std::move(done));
  });
  between.offers.erase(offered);
  between.grants.erase(granted);
}

// With the lock.
void ParcelsInOneProcess::fail(std::exception_ptr error) {
  if (std::exchange(is_over_, true)) return;
  failures_.push_back(std::move(error));
  for (const auto& rank : ranks_) rank->wake();
}

// With the lock, as what follows.
bool ParcelsInOneProcess::expect_early_ends(int from, int to) const {
  const auto expects = [this](int rank) { return ranks_[static_cast<size_t>(rank)]->expects_early_ends(); };
  return expects(from) || expects(to);
}

bool ParcelsInOneProcess::has_left(int rank) const { return ranks_[static_cast<size_t>(rank)]->is_closed(); }

void ParcelsInOneProcess::tell_left(int from, int to, const ParcelKey& key, const std::string& how) {
  if (expect_early_ends(from, to)) return;
  fail(std::make_exception_ptr(InternalError(text_of(key) + " " + text_of_two(from, to) + " is left at the end: " + how)));
}

void ParcelsInOneProcess::look_for_what_is_left(int rank) {
  for (const auto& [ranks, between] : between_) {
    const auto [from, to] = ranks;
    if (from != rank && to != rank) continue;
    if (!between.offers.empty()) tell_left(from, to, between.offers.begin()->first, "nobody has granted it");
    if (!between.grants.empty()) tell_left(from, to, between.grants.begin()->first, "nobody has offered it");
    if (!between.under_way.empty()) tell_left(from, to, *between.under_way.begin(), "it has not arrived");
  }
}

// What is dropped when a rank closes.
std::vector<ParcelsInOneProcess::Between> ParcelsInOneProcess::take_between(int rank) {
  std::vector<Between> taken;
  for (auto& [ranks, between] : between_) {
    if (ranks.first != rank && ranks.second != rank) continue;
    taken.emplace_back();
    taken.back().offers.swap(between.offers);
    taken.back().grants.swap(between.grants);
  }
  return taken;
}

}  // namespace sluice::engine::testing
