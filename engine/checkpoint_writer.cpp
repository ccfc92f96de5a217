#include "engine/checkpoint_writer.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/strings.h"
#include "engine/checkpoint_folder.h"
#include "engine/pipeline_changes.h"
#include "engine/version.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

// Read back, so that the checksum is of what the disk's cache has.
Manifest::File described(const fs::path& folder, const fs::path& path) {
  const MappedFile mapped(path);
  const std::string_view content(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  return {.path = path.lexically_relative(folder).generic_string(),
          .bytes = static_cast<int64_t>(content.size()),
          .crc32c = crc32c(content)};
}

std::vector<Manifest::File> described_files(const fs::path& folder) {
  std::vector<Manifest::File> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(described(folder, entry.path()));
  }
  std::ranges::sort(files, {}, &Manifest::File::path);
  return files;
}

}  // namespace

fs::path CheckpointWriter::write(const Cut& cut) {
  const fs::path folder = make_checkpoints_folder(parts_.run_folder, parts_.plan.checkpoint, parts_.files);
  const std::string name = std::to_string(cut.iterations);
  const fs::path unfinished = folder / (name + ".tmp"), place = folder / name;
  try {
    remove_tree(unfinished, parts_.files);
    make_folders(unfinished, parts_.files);
    fill(unfinished, cut);
    put_in_place(unfinished, place);
  } catch (...) {
    try {
      remove_tree(unfinished, parts_.files);
    } catch (const UserError&) {
      // The first failure is the one to tell; the next checkpoint removes it.
    }
    throw;
  }
  tidy();
  return place;
}

void CheckpointWriter::fill(const fs::path& folder, const Cut& cut) {
  Manifest manifest{.program_version = kVersionText,
                    .saved_at = utc_text(std::time(nullptr)),
                    .iterations = cut.iterations,
                    .oldest_version = cut.iterations,
                    .figures = cut.figures,
                    .pipeline = keys_to_compare(parts_.plan),
                    .nodes = cut.nodes,
                    .growing = cut.growing,
                    .files = {}};
  for (const auto& [name, saved] : parts_.models) {
    saved.model->write_snapshot(folder, parts_.files);
    manifest.oldest_version = std::min(manifest.oldest_version, saved.versions(cut.iterations).oldest);
  }
  for (const auto& [name, state] : cut.nodes) manifest.growing.insert(state.files.begin(), state.files.end());
  for (const auto& [name, bytes] : manifest.growing) sync_file(parts_.run_folder / name, parts_.files);
  manifest.files = described_files(folder);
  OutputFile file(folder / kManifestName, OutputFile::Mode::kTruncate, parts_.files);
  file.write(manifest_json(manifest));
  file.close();
  sync_folder(folder, parts_.files);
}

void CheckpointWriter::put_in_place(const fs::path& folder, const fs::path& place) {
  replace_path(folder, place, parts_.files);
  replace_link(fs::path("checkpoints") / place.filename(), parts_.run_folder / "checkpoint", parts_.files);
}

void CheckpointWriter::tidy() noexcept {
  try {
    for (const fs::path& path : leftovers(parts_.run_folder)) remove_tree(path, parts_.files);
    remove_superfluous();
  } catch (const std::exception& error) {
    if (parts_.on_warning) parts_.on_warning(std::string("an old checkpoint could not be removed: ") + error.what());
  }
}

// One that is damaged is neither counted nor removed: what is in it may still be wanted.
void CheckpointWriter::remove_superfluous() {
  std::vector<Manifest> manifests;
  for (const CheckpointPlace& place : list_checkpoints(parts_.run_folder)) {
    try {
      manifests.push_back(read_manifest(place.folder));
    } catch (const UserError&) {
      continue;
    }
  }
  for (const int64_t iterations : superfluous(manifests, parts_.plan.checkpoint)) {
    remove_whole(parts_.run_folder / "checkpoints" / std::to_string(iterations), parts_.files);
  }
}

fs::path make_checkpoints_folder(const fs::path& run_folder, const CheckpointSettings& settings, FileSystem& files) {
  const fs::path folder = run_folder / "checkpoints";
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return folder;
  if (!settings.folder) {
    make_folders(folder, files);
    return folder;
  }
  const fs::path target = fs::absolute(*settings.folder) / fs::absolute(run_folder).lexically_normal().filename();
  if (fs::is_directory(target, ignored) && !fs::is_empty(target, ignored) && !fs::is_symlink(folder, ignored)) {
    throw UserError(target.string() + " already holds the checkpoints of another run",
                    "choose another [checkpoint] folder, or remove that one");
  }
  make_folders(target, files);
  replace_link(target, folder, files);
  return folder;
}

}  // namespace sluice::engine
