#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/weights/direct_publication.h"
#include "tests/comm/parcel_ranks.h"

namespace sluice::comm::testing {

/// What these bytes are in this version: other ones in each, so that two that are mixed are seen.
inline std::byte byte_of(int64_t version, size_t place) {
  return static_cast<std::byte>((place * 2654435761u + static_cast<size_t>(version) * 40503u) >> 8);
}

inline std::shared_ptr<const std::byte> bytes_of(int64_t version, engine::Range range) {
  const std::shared_ptr<std::byte[]> bytes(new std::byte[range.size()]);
  for (size_t i = 0; i < range.size(); ++i) bytes[i] = byte_of(version, range.begin + i);
  return {bytes, bytes.get()};
}

/// The same; those of some ranges in memory that ranks of this host fetch them from by themselves.
inline std::shared_ptr<const std::byte> offered_bytes(engine::Publication& publication, int64_t version, engine::Range range) {
  const std::shared_ptr<const std::byte> bytes = bytes_of(version, range);
  if ((static_cast<size_t>(version) + range.begin / 16) % 2 == 0) return bytes;
  const size_t skipped = range.begin % 100;
  const std::shared_ptr<std::byte> source = publication.new_source(skipped + range.size());
  std::memcpy(source.get() + skipped, bytes.get(), range.size());
  return {source, source.get() + skipped};
}

inline bool is_version(std::span<const std::byte> bytes, int64_t version) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != byte_of(version, i)) return false;
  return true;
}

/// Each rank on a host of its own, whether they share memory or not. Owners are the first ranks, receivers the last ones; with
/// fewer ranks than both together some are both. Behind `buckets` there is one of `last_bytes`.
inline engine::PublicationLayout layout_of(int ranks, int owners, int receivers, size_t bucket_bytes, size_t buckets,
                                           size_t last_bytes) {
  engine::PublicationLayout layout{.model = "actor", .buckets = {}, .receivers = {}, .hosts = {}};
  size_t begin = 0;
  for (size_t bucket = 0; bucket <= buckets; ++bucket) {
    const size_t end = begin + (bucket < buckets ? bucket_bytes : last_bytes);
    std::vector<engine::OwnedBytes> ranges;
    for (int owner = 0; owner < owners; ++owner) {
      const size_t share = (end - begin) / static_cast<size_t>(owners - owner);
      if (share > 0) ranges.push_back({owner, {begin, begin + share}});
      begin += share;
    }
    if (!ranges.empty()) layout.buckets.push_back(std::move(ranges));
  }
  for (int rank = ranks - receivers; rank < ranks; ++rank) layout.receivers.push_back(rank);
  for (int rank = 0; rank < ranks; ++rank) layout.hosts.push_back(rank);
  return layout;
}

/// Ranks of this process that publish to each other, and what happened at each of them.
class PublishingRanks {
 public:
  struct Happened {
    std::vector<int64_t> landed, opened;
    std::map<int64_t, uint32_t> checksums;  // of what has landed
    std::vector<engine::PublishedVersion> told;
  };

  /// `acknowledges`: a receiver acknowledges what has landed at once.
  PublishingRanks(int size, bool shares_memory, const engine::PublicationLayout& layout, bool acknowledges = true,
                  const DamageOptions& options = {})
      : plan_(layout), parcels_(size, shares_memory, options), happened_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) publications_.push_back(published_by(rank, acknowledges));
  }
  ~PublishingRanks() { publications_.clear(); }

  engine::Publication& operator[](int rank) { return *publications_[static_cast<size_t>(rank)]; }
  ParcelRanks& parcels() { return parcels_; }
  void end(int rank) { publications_[static_cast<size_t>(rank)].reset(); }
  int size() const { return static_cast<int>(happened_.size()); }
  bool receives(int rank) const { return plan_.is_receiver(rank); }

  /// All ranges of the rank.
  void offer(int rank, int64_t version) {
    for (const auto& bucket : plan_.layout().buckets)
      for (const engine::OwnedBytes& owned : bucket)
        if (owned.owner == rank)
          (*this)[rank].offer(version, owned.range, offered_bytes((*this)[rank], version, owned.range), {});
  }

  Happened happened(int rank) {
    const std::lock_guard lock(mutex_);
    return happened_[static_cast<size_t>(rank)];
  }

  /// Waits for: this rank to have so many versions landed, or open. False: they do not come.
  bool landed(int rank, size_t versions) {
    return came([&] { return happened_[static_cast<size_t>(rank)].landed.size() >= versions; });
  }
  bool opened(int rank, size_t versions) {
    return came([&] { return happened_[static_cast<size_t>(rank)].opened.size() >= versions; });
  }
  bool all_opened(size_t versions) {
    return std::ranges::all_of(plan_.ranks(), [&](int rank) { return opened(rank, versions); });
  }

 private:
  std::unique_ptr<DirectPublication> published_by(int rank, bool acknowledges) {
    const auto landed = [this, rank, acknowledges](int64_t version, uint32_t checksum) {
      note(rank, [&](Happened& here) {
        here.landed.push_back(version);
        here.checksums[version] = checksum;
      });
      if (acknowledges) (*this)[rank].acknowledge(version);
    };
    const auto opened = [this, rank](const engine::PublishedVersion& version) {
      note(rank, [&](Happened& here) {
        here.opened.push_back(version.version);
        here.told.push_back(version);
      });
    };
    return std::make_unique<DirectPublication>(parcels_[rank], plan_.layout(),
                                               engine::Publication::Events{.landed = landed, .opened = opened});
  }

  void note(int rank, const std::function<void(Happened&)>& what) {
    const std::lock_guard lock(mutex_);
    what(happened_[static_cast<size_t>(rank)]);
    changed_.notify_all();
  }
  bool came(const std::function<bool()>& what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kNeverSoLong, what);
  }

  const PublicationPlan plan_;
  std::mutex mutex_;  // of happened_
  std::condition_variable changed_;
  ParcelRanks parcels_;
  std::vector<Happened> happened_;
  std::vector<std::unique_ptr<DirectPublication>> publications_;
};

}  // namespace sluice::comm::testing
