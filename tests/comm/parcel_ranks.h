#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"
#include "comm/parcels/direct_parcels.h"
#include "comm/parcels/peer_sockets.h"
#include "tests/comm/ranks_in_threads.h"

namespace sluice::comm::testing {

inline constexpr std::chrono::seconds kNeverSoLong{60};  // never reached unless something hangs

/// Things that are to happen so many times.
class Countdown {
 public:
  explicit Countdown(int64_t count) : left_(count) {}

  void count() {
    const std::lock_guard lock(mutex_);
    --left_;
    changed_.notify_all();
  }
  bool came() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kNeverSoLong, [this] { return left_ == 0; });
  }
  std::function<void()> callback() {
    return [this] { count(); };
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t left_;
};

/// Ranks of this process, connected over the wire that is asked for.
class ParcelRanks {
 public:
  ParcelRanks(int size, bool shares_memory, const DamageOptions& options = {}) : said_(static_cast<size_t>(size)) {
    ranks_.resize(static_cast<size_t>(size));
    const auto store = c10::make_intrusive<c10d::HashStore>();
    const auto said = in_threads(size, [&](int rank) {
      auto sockets = meet_peers(*store, "parcels", {rank, size}, {.shares_memory = shares_memory});
      ranks_[static_cast<size_t>(rank)] = std::make_unique<DirectParcels>(
          engine::World{rank, size}, std::move(sockets), [this, rank](const std::exception_ptr& error) { hear(rank, error); },
          options);
    });
    EXPECT_EQ(said, std::vector<std::string>(static_cast<size_t>(size)));
  }

  DirectParcels& operator[](int rank) { return *ranks_[static_cast<size_t>(rank)]; }
  void end(int rank) { ranks_[static_cast<size_t>(rank)].reset(); }

  /// What a rank said when it failed. Waits for that; empty: it did not.
  std::string failure_of(int rank) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kNeverSoLong, [&] { return !said_[static_cast<size_t>(rank)].empty(); });
    return said_[static_cast<size_t>(rank)];
  }
  std::vector<std::string> failures() {
    const std::lock_guard lock(mutex_);
    return said_;
  }

 private:
  void hear(int rank, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& reason) {
      EXPECT_EQ(said_[static_cast<size_t>(rank)], "") << "it failed twice";
      said_[static_cast<size_t>(rank)] = reason.what();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;  // of said_
  std::condition_variable changed_;
  std::vector<std::string> said_;
  std::vector<std::unique_ptr<DirectParcels>> ranks_;  // end first
};

template <class T>
engine::ColumnData column_of(const std::vector<T>& values) {
  engine::ColumnData column(engine::dtype_of<T>(), values.size());
  std::ranges::copy(values, column.entries<T>().begin());
  return column;
}

/// Bytes of all values, also those that no number has.
inline engine::ColumnData random_column(RandomStream& random, engine::DType dtype, size_t count) {
  engine::ColumnData column(dtype, count);
  const auto fill = [&](std::span<std::byte> bytes) {
    uint64_t bits = random.next_bits();
    for (std::byte& byte : bytes) byte = static_cast<std::byte>((bits = bits * 6364136223846793005 + 1442695040888963407) >> 56);
  };
  switch (dtype) {
    case engine::DType::kFloat32:
      fill(std::as_writable_bytes(column.entries<float>()));
      break;
    case engine::DType::kInt64:
      fill(std::as_writable_bytes(column.entries<int64_t>()));
      break;
    case engine::DType::kUint8:
      fill(std::as_writable_bytes(column.entries<uint8_t>()));
      break;
    case engine::DType::kString:
      for (std::string& text : column.entries<std::string>()) {
        text.resize(random.below(40));
        fill(std::as_writable_bytes(std::span(text)));
      }
  }
  return column;
}

inline engine::Parcel random_parcel(RandomStream& random, size_t most_entries) {
  engine::Parcel parcel{.header = "seed " + std::to_string(random.next_bits()), .columns = {}};
  for (uint64_t columns = random.below(6); columns > 0; --columns) {
    const size_t count = random.below(4) == 0 ? 0 : random.below(most_entries);
    parcel.columns.push_back(random_column(random, static_cast<engine::DType>(random.below(4)), count));
  }
  return parcel;
}

template <class T>
bool have_same_bytes(const engine::ColumnData& a, const engine::ColumnData& b) {
  const auto left = std::as_bytes(a.entries<T>()), right = std::as_bytes(b.entries<T>());
  return left.size() == right.size() && (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

inline bool are_equal(const engine::ColumnData& a, const engine::ColumnData& b) {
  if (a.dtype() != b.dtype() || a.count() != b.count()) return false;
  switch (a.dtype()) {
    case engine::DType::kFloat32:
      return have_same_bytes<float>(a, b);
    case engine::DType::kInt64:
      return have_same_bytes<int64_t>(a, b);
    case engine::DType::kUint8:
      return have_same_bytes<uint8_t>(a, b);
    case engine::DType::kString:
      return std::ranges::equal(a.entries<std::string>(), b.entries<std::string>());
  }
  return false;
}

inline bool are_equal(const engine::Parcel& a, const engine::Parcel& b) {
  return a.header == b.header &&
         std::ranges::equal(a.columns, b.columns, [](const auto& left, const auto& right) { return are_equal(left, right); });
}

}  // namespace sluice::comm::testing
