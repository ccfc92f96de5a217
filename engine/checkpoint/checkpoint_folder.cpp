#include "engine/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "engine/contract/run_folder.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

std::optional<int64_t> number_of(const std::string& name) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0 || std::to_string(number) != name)
    return std::nullopt;
  return number;
}

std::optional<Damage> damage_of(const fs::path& checkpoint, const Manifest::File& file) {
  const fs::path path = checkpoint / file.path;
  try {
    if (!is_file(path)) return Damage{path, "is missing"};
    const int64_t bytes = file_bytes(path);
    if (bytes != file.bytes)
      return Damage{path, "has " + std::to_string(bytes) + " bytes instead of " + std::to_string(file.bytes)};
    if (described(checkpoint, path).crc32c == file.crc32c) return std::nullopt;
  } catch (const UserError& refused) {
    return Damage{path, "cannot be read: " + refused.message()};
  }
  return Damage{path, "has another checksum than when it was saved", /*whole=*/true};
}

std::vector<fs::path> entries_of_checkpoints(const fs::path& run_folder) {
  const fs::path folder = run_folder / "checkpoints";
  return is_folder(folder) ? entries_of(folder) : std::vector<fs::path>();
}

double metric_of(const Manifest& manifest, const std::string& name) {
  const auto found = std::ranges::find(manifest.metrics, name, &MetricRow::value_type::first);
  return found == manifest.metrics.end() ? std::nan("") : found->second;
}

// The later one of two that are as good, since it has learned more; null: none has the metric.
const Manifest* best_of(const std::vector<Manifest>& manifests, const std::string& metric, Best direction) {
  const Manifest* best = nullptr;
  for (const Manifest& manifest : manifests) {
    const double value = metric_of(manifest, metric);
    if (!std::isfinite(value)) continue;
    const double most = best == nullptr ? value : metric_of(*best, metric);
    if (direction == Best::kHighest ? value >= most : value <= most) best = &manifest;
  }
  return best;
}

}  // namespace

std::vector<CheckpointPlace> list_checkpoints(const fs::path& run_folder) {
  std::vector<CheckpointPlace> places;
  for (const fs::path& entry : entries_of_checkpoints(run_folder)) {
    if (const auto number = number_of(entry.filename().string())) places.push_back({*number, entry});
  }
  std::ranges::sort(places, {}, &CheckpointPlace::iterations);
  return places;
}

std::vector<fs::path> leftovers(const fs::path& run_folder) {
  std::vector<fs::path> paths;
  for (const fs::path& entry : entries_of_checkpoints(run_folder)) {
    const std::string suffix = entry.extension().string();
    if ((suffix == ".tmp" || suffix == ".removed") && number_of(entry.stem().string())) paths.push_back(entry);
  }
  return paths;
}

std::optional<Damage> damage_of(const fs::path& checkpoint) {
  Manifest manifest;
  const fs::path path = checkpoint / kManifestName;
  try {
    if (!is_file(path)) return Damage{path, "is missing"};
    manifest = read_manifest(checkpoint);
  } catch (const UserError& error) {
    const std::string& message = error.message();  // begins with the path
    return Damage{path, message.starts_with(path.string() + " ") ? message.substr(path.string().size() + 1) : message};
  }
  const auto named = number_of(checkpoint.filename().string());
  if (named && *named != manifest.iterations)
    return Damage{path, "is that of checkpoint " + std::to_string(manifest.iterations) + ": the folder was renamed"};
  for (const Manifest::File& file : manifest.files) {
    if (auto damage = damage_of(checkpoint, file)) return damage;
  }
  return std::nullopt;
}

bool is_gone_event_file(const fs::path& run_folder, const std::string& name) {
  return name.starts_with(kEventFilePrefix) && name_kind(run_folder / name) == PathKind::kNothing;
}

NewestIntact newest_intact(const fs::path& run_folder) {
  std::vector<CheckpointPlace> places = list_checkpoints(run_folder);
  std::vector<DamagedCheckpoint> damaged;
  for (; !places.empty(); places.pop_back()) {
    auto damage = damage_of(places.back().folder);
    if (!damage) return {places.back(), std::move(damaged)};
    damaged.push_back({places.back(), std::move(*damage)});
  }
  return {std::nullopt, std::move(damaged)};
}

std::vector<int64_t> superfluous(const std::vector<Manifest>& manifests, const CheckpointSettings& settings) {
  std::vector<int64_t> gone;
  if (settings.keep_last == 0 || manifests.empty()) return gone;
  const Manifest* const best = settings.keep_best ? best_of(manifests, *settings.keep_best, settings.best) : nullptr;
  const auto kept = std::min(manifests.size(), static_cast<size_t>(settings.keep_last));
  for (size_t i = 0; i + kept < manifests.size(); ++i) {
    if (&manifests[i] != best) gone.push_back(manifests[i].iterations);
  }
  return gone;
}

}  // namespace sluice::engine
