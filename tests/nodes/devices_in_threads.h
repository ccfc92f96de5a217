#pragma once

#include <barrier>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/contract/world/device_exchange.h"

namespace sluice::nodes::testing {

/// The devices of all ranks of a run, each a thread, in the memory of the host: an exchange waits for the others.
class DevicesInThreads {
 public:
  explicit DevicesInThreads(int ranks) : met_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) devices_.push_back(std::make_unique<OfRank>(*this, rank));
    sent_.resize(static_cast<size_t>(ranks));
  }

  engine::DeviceExchange& rank(int rank) { return *devices_[static_cast<size_t>(rank)]; }

  /// That a rank has sent so far.
  int64_t floats_of(int rank) const { return devices_[static_cast<size_t>(rank)]->floats; }

 private:
  using Piece = engine::DeviceExchange::Piece;

  class OfRank final : public engine::DeviceExchange {
   public:
    OfRank(DevicesInThreads& all, int rank) : all_(all), rank_(rank) {}

    void exchange(std::span<const Piece> to, std::span<const Piece> from, void* /*stream*/) override {
      all_.sent_[static_cast<size_t>(rank_)] = {to.begin(), to.end()};
      for (const Piece& piece : to) floats += piece.count;
      all_.met_.arrive_and_wait();
      std::map<int, size_t> next;  // by rank
      for (const Piece& wanted : from) {
        const Piece given = all_.piece(wanted.rank, rank_, next[wanted.rank]++);
        SLUICE_CHECK(given.count == wanted.count, "a rank gives another number of floats");
        std::memcpy(wanted.floats, given.floats, static_cast<size_t>(given.count) * sizeof(float));
      }
      all_.met_.arrive_and_wait();
    }
    void abandon() override {}

    int64_t floats = 0;

   private:
    DevicesInThreads& all_;
    const int rank_;
  };

  Piece piece(int from, int to, size_t number) const {
    for (const Piece& piece : sent_[static_cast<size_t>(from)]) {
      if (piece.rank == to && number-- == 0) return piece;
    }
    throw InternalError("a rank gives fewer pieces");
  }

  std::barrier<> met_;
  std::vector<std::vector<Piece>> sent_;  // by rank
  std::vector<std::unique_ptr<OfRank>> devices_;
};

}  // namespace sluice::nodes::testing
