#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engine/contract/model.h"
#include "engine/contract/world/publication.h"

namespace sluice::engine::toy {

/// One number as weights, published by version: the last `readable_versions` can be sampled, older ones throw. A snapshot is a
/// folder with a text. With roles the first two ranks that train send half of it each.
class ToyModel final : public Model {
 public:
  explicit ToyModel(std::string name, int64_t readable_versions = std::numeric_limits<int64_t>::max(), int rank = 0)
      : name_(std::move(name)),
        file_(rank == 0 ? "weights" : "part-" + std::to_string(rank)),
        readable_versions_(readable_versions) {}
  explicit ToyModel(const ModelUsage& usage);

  void take_snapshot(VersionRange versions, CheckpointCopy copy) override;
  void write_snapshot(const std::filesystem::path& folder, FileSystem& files) override;
  void restore(const std::filesystem::path& folder, VersionRange versions) override;
  uint64_t published(int64_t version) const;
  void publish(int64_t version);
  void begin_with_version(int64_t first) override { begin_publication(first); }
  void receive_version(int64_t version, VersionReceived done) override;

  uint64_t live = 1;

 private:
  const std::string name_, file_;
  const int64_t readable_versions_;
  std::string text_of(VersionRange versions) const;

  VersionRange taken_;
  std::optional<std::string> copy_;  // of the snapshot; nothing: it is what is live when it is written
  mutable std::mutex mutex_;
  std::map<int64_t, uint64_t> published_{{0, 1}};

  void begin_publication(int64_t first_version);
  void offer(int64_t version);
  void take_landed(int64_t version);
  void tell(int64_t version, const ReceivedVersion& received);

  ModelUsage usage_;  // of one that is sent or received
  std::map<int64_t, std::shared_ptr<Landing>> landings_;
  std::map<int64_t, VersionReceived> to_tell_;
  std::unique_ptr<Publication> publication_;  // last: it calls back
};

}  // namespace sluice::engine::toy
