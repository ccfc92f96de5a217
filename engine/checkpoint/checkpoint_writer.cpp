#include "engine/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/checkpoints_place.h"
#include "engine/contract/run_folder.h"
#include "engine/contract/version.h"
#include "engine/plan/pipeline_changes.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

// Read back, so that the checksums are of what the disk's cache has.
void add_files(const fs::path& checkpoint, const fs::path& folder, std::vector<Manifest::File>& files) {
  for (const fs::path& entry : entries_of(folder)) {
    if (is_folder(entry)) add_files(checkpoint, entry, files);
    if (is_file(entry)) files.push_back(described(checkpoint, entry));
  }
}

std::vector<Manifest::File> described_files(const fs::path& folder) {
  std::vector<Manifest::File> files;
  add_files(folder, folder, files);
  std::ranges::sort(files, {}, &Manifest::File::path);
  return files;
}

}  // namespace

void CheckpointWriter::begin(int64_t iterations) {
  const std::lock_guard lock(mutex_);
  if (begun_ == iterations) return;
  drop();
  folder_ = make_checkpoints_folder(parts_.run_folder, parts_.plan.checkpoint, parts_.files);
  tidy(folder_);  // a run that goes on may keep fewer than it did, so that there is room
  unfinished_ = unfinished_checkpoint(parts_.run_folder, parts_.plan.checkpoint, iterations);
  remove_tree(unfinished_, parts_.files);
  make_folders(unfinished_, parts_.files);
  begun_ = iterations;
}

void CheckpointWriter::write_model(const std::string& name) {
  parts_.models.at(name).model->write_snapshot(unfinished_, parts_.files);
}

fs::path CheckpointWriter::finish(const Cut& cut) {
  SLUICE_CHECK(begun_ == cut.iterations, "another checkpoint was begun");
  const std::string name = std::to_string(cut.iterations);
  complete(cut);
  put_in_place(unfinished_, folder_ / name);
  begun_ = -1;
  unfinished_.clear();
  tidy(folder_);
  return parts_.run_folder / kCheckpointsFolder / name;
}

// Also of one whose folder could not be made as a whole.
void CheckpointWriter::drop() noexcept {
  if (unfinished_.empty()) return;
  try {
    remove_tree(unfinished_, parts_.files);
  } catch (const std::exception&) {
    // What has failed before is the thing to tell.
  }
  begun_ = -1;
  unfinished_.clear();
}

void CheckpointWriter::complete(const Cut& cut) {
  Manifest manifest{.program_version = kVersionText,
                    .saved_at = utc_text(std::time(nullptr)),
                    .iterations = cut.iterations,
                    .oldest_version = cut.iterations,
                    .metrics = cut.metrics,
                    .pipeline = keys_to_compare(parts_.plan),
                    .nodes = cut.nodes,
                    .growing = cut.growing,
                    .files = {}};
  for (const auto& [name, saved] : parts_.models)
    manifest.oldest_version = std::min(manifest.oldest_version, saved.versions.saved_with(cut.iterations).oldest);
  for (const auto& [name, state] : cut.nodes) manifest.growing.insert(state.files.begin(), state.files.end());
  std::erase_if(manifest.growing, [this](const auto& file) { return is_gone_event_file(parts_.run_folder, file.first); });
  for (const auto& [name, bytes] : manifest.growing) sync_growing(name, cut);
  manifest.files = described_files(unfinished_);
  const std::string text = manifest_json(manifest);
  if (std::ssize(text) > kMostTextBytes)  // which nobody would read again; what nodes keep leaves a quarter of it
    throw UserError("the checkpoint's list of files, settings and metrics has " + human_bytes(std::ssize(text)) +
                    "; there may be " + human_bytes(kMostTextBytes));
  OutputFile file(unfinished_ / kManifestName, OutputFile::Mode::kTruncate, parts_.files);
  file.write(text);
  file.close();
  sync_folder(unfinished_, parts_.files);
}

// A run goes on without the end of an event file, so that is no reason to lose the checkpoint too.
void CheckpointWriter::sync_growing(const std::string& name, const Cut& cut) {
  try {
    sync_file(parts_.run_folder / name, parts_.files);
  } catch (const UserError& error) {
    if (name.starts_with(kEventFilePrefix)) return;
    const auto writer = std::ranges::find_if(cut.nodes, [&](const auto& node) { return node.second.files.contains(name); });
    if (writer == cut.nodes.end()) throw;
    throw UserError("what node '" + writer->first + "' appends to cannot be saved: " + error.message(), error.help());
  }
}

void CheckpointWriter::put_in_place(const fs::path& folder, const fs::path& place) {
  replace_path(folder, place, parts_.files);
  replace_link(fs::path(kCheckpointsFolder) / place.filename(), parts_.run_folder / kNewestCheckpointLink, parts_.files);
}

void CheckpointWriter::tidy(const fs::path& folder) noexcept {
  try {
    for (const fs::path& path : leftovers(parts_.run_folder)) remove_tree(folder / path.filename(), parts_.files);
    remove_superfluous(folder);
  } catch (const std::exception& error) {
    if (parts_.on_warning) parts_.on_warning(std::string("an old checkpoint could not be removed: ") + error.what());
  }
}

// One that is damaged is neither counted nor removed: what is in it may still be wanted.
void CheckpointWriter::remove_superfluous(const fs::path& folder) {
  std::vector<Manifest> manifests;
  for (const CheckpointPlace& place : list_checkpoints(parts_.run_folder)) {
    try {
      manifests.push_back(read_manifest(place.folder));
    } catch (const UserError&) {
      continue;
    }
  }
  for (const int64_t iterations : superfluous(manifests, parts_.plan.checkpoint)) {
    remove_whole(folder / std::to_string(iterations), parts_.files);
  }
}

}  // namespace sluice::engine
