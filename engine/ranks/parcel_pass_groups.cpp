#include "engine/ranks/parcel_pass_groups.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr auto kMostText = static_cast<int64_t>(Parcel::kMostHeader);  // of a message
constexpr int64_t kBesideColumn = 64;                                  // at most; see credit_bytes()
constexpr int64_t kMostColumns = 64;

}  // namespace

class ParcelPassGroups::Group final : public PassGroup {
 public:
  Group(Parcels& parcels, std::string model, std::vector<int> ranks, int ring, int expert_ranks)
      : parcels_(parcels),
        model_(std::move(model)),
        ranks_(std::move(ranks)),
        ring_(ring),
        expert_ranks_(expert_ranks),
        place_(static_cast<int>(std::ranges::find(ranks_, parcels.world().rank) - ranks_.begin())),
        sent_(ranks_.size()),
        expected_(ranks_.size()),
        state_(std::make_shared<State>()) {}

  int place() const override { return place_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  int ring() const override { return ring_; }
  int expert_ranks() const override { return expert_ranks_; }

  void send(int to, std::string text, Columns columns) override {
    SLUICE_CHECK(std::ssize(text) <= kMostText && std::ssize(columns) <= kMostColumns, "a message that is too long");
    {
      const std::lock_guard lock(state_->mutex);
      ++state_->on_their_way;
    }
    parcels_.send(rank_of(to), key(sent_[static_cast<size_t>(to)]++), {.header = std::move(text), .columns = std::move(columns)},
                  [state = state_] {
                    const std::lock_guard lock(state->mutex);
                    --state->on_their_way;
                    state->changed.notify_all();
                  });
  }

  void flush() override {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->is_over || state_->on_their_way == 0; });
  }

  Message receive(int from, int64_t most_bytes) override { return wait_for(from, expect(from, most_bytes + kMostText)); }

  std::vector<Columns> exchange(std::vector<Columns> to, const std::vector<int64_t>& most_bytes) override {
    std::vector<int64_t> numbers(ranks_.size());
    const auto for_each_giver = [&](const auto& what) {
      for_each_other([&](int place) {
        if (most_bytes[static_cast<size_t>(place)] > 0) what(place, static_cast<size_t>(place));
      });
    };
    for_each_giver([&](int place, size_t at) { numbers[at] = expect(place, most_bytes[at]); });
    for_each_other([&](int place) {
      Columns& columns = to[static_cast<size_t>(place)];
      if (std::ranges::any_of(columns, [](const ColumnData& column) { return column.bytes() > 0; }))
        send(place, {}, std::move(columns));
    });
    std::vector<Columns> from(ranks_.size());
    for_each_giver([&](int place, size_t at) { from[at] = wait_for(place, numbers[at]).columns; });
    return from;
  }

  void abandon() {
    const std::lock_guard lock(state_->mutex);
    state_->is_over = true;
    state_->changed.notify_all();
  }

 private:
  // What parcels change, which may come late.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, int64_t>, Parcel> arrived;  // and not taken, by place and number
    int64_t on_their_way = 0;                           // to others
    bool is_over = false;
  };

  int rank_of(int place) const { return ranks_[static_cast<size_t>(place)]; }
  ParcelKey key(int64_t number) const { return {.edge = model_, .number = number, .of = ParcelOf::kPass}; }

  void for_each_other(const auto& what) const {
    for (int place = 0; place < size(); ++place)
      if (place != place_) what(place);
  }

  int64_t expect(int from, int64_t most_bytes) {
    const int64_t number = expected_[static_cast<size_t>(from)]++;
    parcels_.receive(rank_of(from), key(number), most_bytes + kMostColumns * kBesideColumn,
                     [state = state_, from, number](Parcel parcel) {
                       const std::lock_guard lock(state->mutex);
                       state->arrived.emplace(std::pair(from, number), std::move(parcel));
                       state->changed.notify_all();
                     });
    return number;
  }

  Message wait_for(int from, int64_t number) {
    std::unique_lock lock(state_->mutex);
    const auto has_come = [&] { return state_->arrived.contains({from, number}); };
    state_->changed.wait(lock, [&] { return state_->is_over || has_come(); });
    if (!has_come())
      throw UserError("the ranks that compute passes of model " + model_ + " with this one are lost, or have ended");
    Parcel parcel = std::move(state_->arrived.extract({from, number}).mapped());
    return {.text = std::move(parcel.header), .columns = std::move(parcel.columns)};
  }

  Parcels& parcels_;
  const std::string model_;
  const std::vector<int> ranks_;
  const int ring_, expert_ranks_;
  const int place_;
  std::vector<int64_t> sent_, expected_;  // messages, by place
  const std::shared_ptr<State> state_;
};

ParcelPassGroups::ParcelPassGroups(Parcels& parcels, std::vector<int> ranks, int ring, int expert_ranks)
    : parcels_(parcels), ranks_(std::move(ranks)), ring_(ring), expert_ranks_(expert_ranks) {}

ParcelPassGroups::~ParcelPassGroups() = default;

ParcelPassGroups::Group& ParcelPassGroups::made(const std::string& key, const std::string& name, std::vector<int> ranks, int ring,
                                                int expert_ranks) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Group>& group = groups_[key];
  if (!group) {
    group = std::make_unique<Group>(parcels_, name, std::move(ranks), ring, expert_ranks);
    if (is_over_) group->abandon();
  }
  return *group;
}

PassGroup& ParcelPassGroups::of(const std::string& name, int first) {
  const auto end = first == 0 ? ranks_.end() : ranks_.begin() + first;
  return made(name, name, std::vector<int>(ranks_.begin(), end), ring_, expert_ranks_);
}

PassGroup& ParcelPassGroups::between(const std::string& name, int asks, int answers) {
  const std::string key = name + "/" + std::to_string(asks) + "/" + std::to_string(answers);
  return made(key, name, {asks, answers}, /*ring=*/1, /*expert_ranks=*/1);
}

std::mutex& ParcelPassGroups::backward_on(const std::string& device) {
  const std::lock_guard lock(mutex_);
  return backwards_[device];
}

void ParcelPassGroups::abandon() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  for (const auto& [name, group] : groups_) group->abandon();
}

}  // namespace sluice::engine
