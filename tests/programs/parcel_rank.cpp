// Rank 1 of two, for tests that kill it: it joins, says "ready PID", and parcels go between it and rank 0 until it dies.
//
// usage: parcel_rank PORT WIRE DOES
// WIRE: "memory" or "stream". DOES: "sends" or "receives".

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>

#include "comm/parcels/parcels_over.h"
#include "comm/store.h"

namespace sluice {
namespace {

constexpr int64_t kAtOnce = 4;
constexpr int64_t kCredit = 4 << 20;

// Begins parcels without end, so many at once.
class Traffic {
 public:
  Traffic(engine::Parcels& parcels, bool sends) : parcels_(parcels), sends_(sends) {}

  void go_on() {
    for (int64_t number = 0;; ++number) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return under_way_ < kAtOnce; });
        ++under_way_;
      }
      begin({"edge", 3, number});
    }
  }

 private:
  void begin(const engine::ParcelKey& key) {
    if (sends_)
      parcels_.send(0, key, {.header = {}, .columns = {engine::ColumnData(engine::DType::kFloat32, 700'000)}}, [this] { end(); });
    else
      parcels_.receive(0, key, kCredit, [this](const engine::Parcel&) { end(); });
  }

  void end() {
    const std::lock_guard lock(mutex_);
    --under_way_;
    changed_.notify_all();
  }

  engine::Parcels& parcels_;
  const bool sends_;
  std::mutex mutex_;  // of under_way_
  std::condition_variable changed_;
  int64_t under_way_ = 0;
};

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const sluice::comm::Store store({.rank = 1, .size = 2, .port = std::atoi(argv[1])});
  const auto parcels = sluice::comm::parcels_over(store, {.shares_memory = argv[2] == std::string("memory")},
                                                  [](const std::exception_ptr&) { std::_Exit(3); });
  std::cout << "ready " << ::getpid() << std::endl;
  sluice::Traffic(*parcels, argv[3] == std::string("sends")).go_on();
}
