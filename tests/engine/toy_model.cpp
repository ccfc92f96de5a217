#include "tests/engine/toy_model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <sstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"

namespace sluice::engine::toy {

std::string ToyModel::text_of(VersionRange versions) const {
  std::ostringstream text;
  text << live;
  for (int64_t version = versions.oldest; version < versions.newest; ++version) text << ' ' << published(version);
  return text.str();
}

void ToyModel::take_snapshot(VersionRange versions, CheckpointCopy copy) {
  taken_ = versions;
  copy_.reset();
  if (copy == CheckpointCopy::kMemory) copy_ = text_of(versions);
}

void ToyModel::write_snapshot(const std::filesystem::path& folder, FileSystem& files) {
  make_folders(folder / name_, files);
  OutputFile file(folder / name_ / file_, OutputFile::Mode::kTruncate, files);
  file.write(copy_ ? *copy_ : text_of(taken_));
  file.close();
  sync_folder(folder / name_, files);
}

ToyModel::ToyModel(const ModelUsage& usage)
    : ToyModel(usage.name, std::max(usage.versions.readable, usage.versions.kept_to_save() + 1), usage.world.rank) {
  usage_ = usage;
  if (usage.sent || usage.received) begin_publication(1);
}

void ToyModel::begin_publication(int64_t first_version) {
  publication_.reset();
  const World& world = usage_.world;
  PublicationLayout layout{.model = name_, .buckets = {{{.owner = 0, .range = {0, 4}}}}, .first_version = first_version};
  layout.buckets.front().push_back({.owner = world.owners() > 1 ? 1 : 0, .range = {4, 8}});
  layout.receivers = usage_.receivers;
  publication_ = usage_.publications->publication(
      std::move(layout), {.landed = [this](int64_t version, uint32_t) { take_landed(version); },
                          .opened = [this](const PublishedVersion& version) { tell(version.version, {.published = version}); }});
}

void ToyModel::offer(int64_t version) {
  auto bytes = std::make_shared<std::array<std::byte, 8>>();
  std::memcpy(bytes->data(), &live, bytes->size());
  for (const size_t begin : {size_t{0}, size_t{4}}) {
    const int owner = begin > 0 && usage_.world.owners() > 1 ? 1 : 0;
    if (owner == usage_.world.rank)
      publication_->offer(version, {begin, begin + 4}, std::shared_ptr<const std::byte>(bytes, bytes->data() + begin), {});
  }
}

void ToyModel::receive_version(int64_t version, VersionReceived done) {
  const std::shared_ptr<Landing> landing = publication_->new_landing();
  {
    const std::lock_guard lock(mutex_);
    to_tell_[version] = std::move(done);
    landings_[version] = landing;
  }
  publication_->receive(version, landing);
}

void ToyModel::tell(int64_t version, const ReceivedVersion& received) {
  VersionReceived done;
  {
    const std::lock_guard lock(mutex_);
    done = std::exchange(to_tell_[version], {});
  }
  if (done) done(received);
}

void ToyModel::take_landed(int64_t version) {
  try {
    const std::lock_guard lock(mutex_);
    std::memcpy(&published_[version], landings_.extract(version).mapped()->bytes().data(), sizeof live);
    published_.erase(version - readable_versions_);
  } catch (...) {
    return tell(version, {.failure = std::current_exception()});
  }
  publication_->acknowledge(version);
}

void ToyModel::restore(const std::filesystem::path& folder, VersionRange versions) {
  if (usage_.sent || usage_.received) begin_publication(versions.oldest);
  if (usage_.received) {
    std::promise<void> come;
    for (int64_t version = versions.oldest; version <= versions.newest; ++version)
      receive_version(version, [&, version](const ReceivedVersion& received) {
        if (received.failure)
          come.set_exception(received.failure);
        else if (version == versions.newest)
          come.set_value();
      });
    return come.get_future().get();
  }
  std::istringstream text(read_file(folder / name_ / "weights"));
  text >> live;
  const std::lock_guard lock(mutex_);
  published_ = {{versions.newest, live}};
  for (int64_t version = versions.oldest; version < versions.newest; ++version) text >> published_[version];
  if (!text) throw UserError("model '" + name_ + "' lacks a version in " + folder.string());
  if (!usage_.sent) return;
  const uint64_t newest = live;
  for (const auto& [version, weights] : published_) {
    live = weights;
    offer(version);
  }
  live = newest;
}

uint64_t ToyModel::published(int64_t version) const {
  const std::lock_guard lock(mutex_);
  return published_.at(version);
}

void ToyModel::publish(int64_t version) {
  if (usage_.sent) offer(version);
  const std::lock_guard lock(mutex_);
  published_[version] = live;
  published_.erase(version - readable_versions_);
}

}  // namespace sluice::engine::toy
