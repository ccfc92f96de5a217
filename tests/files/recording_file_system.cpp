#include "tests/files/recording_file_system.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sluice {
namespace fs = std::filesystem;
using Kind = FileOperation::Kind;

FolderContent content_of(const fs::path& folder) {
  FolderContent content;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    FolderContent::Entry& found = content.entries[entry.path().lexically_relative(folder)];
    if (entry.is_symlink()) {
      found = {FolderContent::Kind::kLink, fs::read_symlink(entry.path()).string()};
    } else if (entry.is_directory()) {
      found = {FolderContent::Kind::kFolder, {}};
    } else {
      std::ifstream stream(entry.path(), std::ios::binary);
      found.bytes.assign(std::istreambuf_iterator<char>(stream), {});
    }
  }
  return content;
}

std::string text_of(const FileOperation& operation) {
  const std::string path = operation.path.string(), other = operation.other.string();
  switch (operation.kind) {
    case Kind::kOpen:
      return "open " + path;
    case Kind::kWrite:
      return "write " + std::to_string(operation.bytes.size()) + " bytes to " + path;
    case Kind::kTruncate:
      return "cut " + path + " to " + std::to_string(operation.size) + " bytes";
    case Kind::kSync:
      return "sync " + path;
    case Kind::kClose:
      return "close " + path;
    case Kind::kRename:
      return "rename " + path + " to " + other;
    case Kind::kExchange:
      return "exchange " + path + " and " + other;
    case Kind::kMakeFolder:
      return "make folder " + path;
    case Kind::kMakeLink:
      return "make link " + path + " to " + operation.bytes;
    case Kind::kRemoveFile:
      return "remove " + path;
    case Kind::kRemoveFolder:
      return "remove folder " + path;
  }
  return {};
}

RecordingFileSystem::RecordingFileSystem(const fs::path& folder, FileSystem& files)
    : folder_(fs::canonical(folder)), files_(files), recording_{content_of(folder_), {}} {}

Recording RecordingFileSystem::recording() const {
  const std::lock_guard lock(mutex_);
  return recording_;
}

size_t RecordingFileSystem::size() const {
  const std::lock_guard lock(mutex_);
  return recording_.operations.size();
}

// `path` in the recorded folder, its folders followed through links but not itself. Nothing: it is elsewhere.
std::optional<fs::path> RecordingFileSystem::inside(const fs::path& path) const {
  fs::path place = fs::absolute(path).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();  // after a slash
  place = fs::weakly_canonical(place.parent_path()) / place.filename();
  const fs::path relative = place.lexically_relative(folder_);
  if (relative.empty() || *relative.begin() == "..") return std::nullopt;
  return relative;
}

int RecordingFileSystem::named(Kind kind, const fs::path& path, const auto& operation) {
  const std::lock_guard lock(mutex_);
  const std::optional<fs::path> place = inside(path);
  const int result = operation();
  if (result == 0 && place) recording_.operations.push_back({.kind = kind, .path = *place});
  return result;
}

int RecordingFileSystem::renamed(Kind kind, const fs::path& from, const fs::path& to, const auto& operation) {
  const std::lock_guard lock(mutex_);
  const std::optional<fs::path> source = inside(from), target = inside(to);
  if (source.has_value() != target.has_value())
    throw std::logic_error("a rename into or out of the recorded folder: " + from.string());
  const int result = operation();
  if (result == 0 && source) recording_.operations.push_back({.kind = kind, .path = *source, .other = *target});
  return result;
}

void RecordingFileSystem::add_to_opened(Kind kind, int descriptor, std::string bytes, int64_t size) {
  const auto found = opened_.find(descriptor);
  if (found == opened_.end()) return;
  const auto& [handle, path] = found->second;
  recording_.operations.push_back({.kind = kind, .path = path, .handle = handle, .bytes = std::move(bytes), .size = size});
}

int RecordingFileSystem::open(const fs::path& path, int flags) {
  const std::lock_guard lock(mutex_);
  const std::optional<fs::path> place = inside(path);
  const int descriptor = files_.open(path, flags);
  if (descriptor < 0 || !place) return descriptor;
  opened_[descriptor] = {handles_, *place};
  recording_.operations.push_back({.kind = Kind::kOpen, .path = *place, .handle = handles_++, .flags = flags});
  return descriptor;
}

ssize_t RecordingFileSystem::write(int descriptor, const void* bytes, size_t size) {
  const std::lock_guard lock(mutex_);
  const ssize_t count = files_.write(descriptor, bytes, size);
  if (count > 0) add_to_opened(Kind::kWrite, descriptor, {static_cast<const char*>(bytes), static_cast<size_t>(count)}, 0);
  return count;
}

int RecordingFileSystem::truncate(int descriptor, off_t size) {
  const std::lock_guard lock(mutex_);
  const int result = files_.truncate(descriptor, size);
  if (result == 0) add_to_opened(Kind::kTruncate, descriptor, {}, size);
  return result;
}

int RecordingFileSystem::sync(int descriptor) {
  const std::lock_guard lock(mutex_);
  const int result = files_.sync(descriptor);
  if (result == 0) add_to_opened(Kind::kSync, descriptor, {}, 0);
  return result;
}

int RecordingFileSystem::close(int descriptor) {
  const std::lock_guard lock(mutex_);
  const int result = files_.close(descriptor);
  add_to_opened(Kind::kClose, descriptor, {}, 0);
  opened_.erase(descriptor);
  return result;
}

int RecordingFileSystem::rename(const fs::path& from, const fs::path& to) {
  return renamed(Kind::kRename, from, to, [&] { return files_.rename(from, to); });
}

int RecordingFileSystem::exchange(const fs::path& one, const fs::path& other) {
  return renamed(Kind::kExchange, one, other, [&] { return files_.exchange(one, other); });
}

int RecordingFileSystem::make_folder(const fs::path& path) {
  return named(Kind::kMakeFolder, path, [&] { return files_.make_folder(path); });
}

int RecordingFileSystem::make_link(const fs::path& target, const fs::path& path) {
  const std::lock_guard lock(mutex_);
  const std::optional<fs::path> place = inside(path);
  const int result = files_.make_link(target, path);
  if (result == 0 && place) recording_.operations.push_back({.kind = Kind::kMakeLink, .path = *place, .bytes = target.string()});
  return result;
}

int RecordingFileSystem::remove_file(const fs::path& path) {
  return named(Kind::kRemoveFile, path, [&] { return files_.remove_file(path); });
}

int RecordingFileSystem::remove_folder(const fs::path& path) {
  return named(Kind::kRemoveFolder, path, [&] { return files_.remove_folder(path); });
}

}  // namespace sluice
