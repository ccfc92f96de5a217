#include "engine/simulation/simulated_links.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/simulation/simulated_network.h"

namespace sluice::engine {

class SimulatedLinks::OfRank final : public Mail, public Parcels {
 public:
  OfRank(SimulatedLinks& all, World world) : all_(all), world_(world) {}

  World world() const override { return world_; }

  void send(int to, Channel channel, std::string message) override {
    OfRank& there = all_.rank(to);
    all_.network_.later(
        to, all_.network_.transfer_ns(world_.rank, to, std::ssize(message)),
        [&there, channel, from = world_.rank, message = std::move(message)] { there.handlers_.at(channel)(from, message); });
  }
  void receive(Channel channel, Handler handler) override { handlers_[channel] = std::move(handler); }
  void close() override {}

  void send(int to, ParcelKey key, Parcel parcel, std::function<void()> done) override {
    OfRank& there = all_.rank(to);
    Meeting& meeting = there.open_[{world_.rank, key}];
    meeting.parcel = std::move(parcel);
    meeting.done = std::move(done);
    there.move_if_met({world_.rank, std::move(key)});
  }
  void receive(int from, ParcelKey key, int64_t /*most_bytes*/, Arrived arrived) override {
    open_[{from, key}].arrived = std::move(arrived);
    move_if_met({from, std::move(key)});
  }
  void expect_early_ends() override {}
  std::vector<ParcelTraffic> traffic() const override { return std::vector<ParcelTraffic>(static_cast<size_t>(world_.size)); }
  void abandon() override {}

 private:
  using Key = std::pair<int, ParcelKey>;  // with the sender

  struct Meeting {
    std::optional<Parcel> parcel;
    std::function<void()> done;
    Arrived arrived;
  };

  // The grant has to get to the sender first.
  void move_if_met(const Key& key) {
    Meeting& open = open_.at(key);
    if (!open.parcel || !open.arrived) return;
    const auto met = std::make_shared<Meeting>(std::move(open_.extract(key).mapped()));
    const int from = key.first, to = world_.rank;
    SimulatedNetwork& network = all_.network_;
    const int64_t bytes = credit_bytes(*met->parcel),
                  ns = network.transfer_ns(to, from, 0) + network.transfer_ns(from, to, bytes);
    network.carry_columns(to, ns, bytes, [met] { met->arrived(std::move(*met->parcel)); });
    if (met->done) network.later(from, ns + network.transfer_ns(to, from, 0), [met] { met->done(); });
  }

  SimulatedLinks& all_;
  const World world_;
  std::map<Channel, Handler> handlers_;
  std::map<Key, Meeting> open_;  // to this rank: given or granted, not both
};

SimulatedLinks::SimulatedLinks(SimulatedNetwork& network, int ranks) : network_(network) {
  for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<OfRank>(*this, World{.rank = rank, .size = ranks}));
}

SimulatedLinks::~SimulatedLinks() = default;

SimulatedLinks::OfRank& SimulatedLinks::rank(int index) { return *ranks_[static_cast<size_t>(index)]; }

RankLinks SimulatedLinks::of_rank(int rank) { return {.mail = this->rank(rank), .parcels = this->rank(rank)}; }

}  // namespace sluice::engine
