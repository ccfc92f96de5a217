#include "base/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files/file_calls.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"

namespace sluice {
namespace fs = std::filesystem;
namespace {

int64_t size_of(int descriptor, const fs::path& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_with_errno("read", path);
  return status.st_size;
}

[[noreturn]] void fail_because_large(const fs::path& path, int64_t most_bytes) {
  throw UserError("cannot read " + path.string() + ": it has more than " + human_bytes(most_bytes) + ", which no such file has");
}

std::string read_at_most(int descriptor, const fs::path& path, int64_t bytes) {
  std::string content;
  char buffer[1 << 16];
  while (static_cast<int64_t>(content.size()) < bytes) {
    const size_t wanted = std::min(sizeof buffer, static_cast<size_t>(bytes) - content.size());
    const ssize_t count = uninterrupted([&] { return ::read(descriptor, buffer, wanted); });
    if (count < 0) fail_with_errno("read", path);
    if (count == 0) break;
    content.append(buffer, static_cast<size_t>(count));
  }
  return content;
}

// Whether one rename puts `finished` in the place of `target`: it does not replace a folder that has something in it, nor
// anything else by a folder. Links count as themselves.
bool takes_one_rename(const fs::path& finished, const fs::path& target) {
  const PathKind there = name_kind(target);
  return there == PathKind::kNothing || (there != PathKind::kFolder && name_kind(finished) != PathKind::kFolder);
}

// `finished` gets the place of `target`, and that one the name `aside`. When it fails, `target` is where it was if that can be
// had.
void swap_paths(const fs::path& finished, const fs::path& target, const fs::path& aside, FileSystem& files) {
  const auto exchange = [&] { return uninterrupted([&] { return files.exchange(finished, target); }); };
  if (exchange() == 0) {  // in one step, so that a crash cannot come between two
    try {
      rename_or_fail(finished, aside, files);
    } catch (...) {
      exchange();
      throw;
    }
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) fail_with_errno("rename " + finished.string() + " to", target);
  rename_or_fail(target, aside, files);
  try {
    rename_or_fail(finished, target, files);
  } catch (...) {
    uninterrupted([&] { return files.rename(aside, target); });
    throw;
  }
}

}  // namespace

std::string read_file(const fs::path& path, int64_t most_bytes) {
  const ScopedDescriptor file(open_for_reading(path));
  if (size_of(file.value(), path) > most_bytes) fail_because_large(path, most_bytes);
  std::string content = read_at_most(file.value(), path, most_bytes + 1);  // it may be growing, or hide its size as in /proc
  if (static_cast<int64_t>(content.size()) > most_bytes) fail_because_large(path, most_bytes);
  return content;
}

std::string read_end_of_file(const fs::path& path, int64_t bytes) {
  const ScopedDescriptor file(open_for_reading(path));
  const int64_t begin = std::max<int64_t>(0, size_of(file.value(), path) - bytes);
  if (::lseek(file.value(), begin, SEEK_SET) < 0) fail_with_errno("read", path);
  return read_at_most(file.value(), path, bytes);
}

OutputFile::OutputFile(const fs::path& path, Mode mode, FileSystem& files) : files_(files), path_(path) {
  const int how = mode == Mode::kAppend ? O_APPEND : O_TRUNC;
  // A named pipe that nobody reads fails at once instead of waiting for a reader.
  descriptor_ = open_or_fail(path, O_WRONLY | O_CREAT | O_NONBLOCK | how, "write", files);
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0) size_ = status.st_size;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) files_.close(descriptor_);
}

void OutputFile::write(std::string_view bytes) {
  SLUICE_CHECK(descriptor_ >= 0, "write to a closed file");
  while (!bytes.empty()) {
    const ssize_t count = uninterrupted([&] { return files_.write(descriptor_, bytes.data(), bytes.size()); });
    if (count < 0) fail_with_errno("write", path_);
    bytes.remove_prefix(static_cast<size_t>(count));
    size_ += count;
  }
}

void OutputFile::sync() { sync_or_fail(descriptor_, path_, files_); }

void OutputFile::close() {
  sync();
  // Not made again after a signal: the descriptor is gone by then, and its number may be another file's.
  if (files_.close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail_with_errno("write", path_);
}

void write_file_atomically(const fs::path& path, std::string_view content, FileSystem& files) {
  const fs::path temporary = beside(path, ".tmp");
  try {
    OutputFile file(temporary, OutputFile::Mode::kTruncate, files);
    file.write(content);
    file.close();
    rename_or_fail(temporary, path, files);
  } catch (...) {
    clean_up(temporary, files);
    throw;
  }
  sync_folder(path.parent_path(), files);
}

void replace_file(const fs::path& path, std::string_view content, FileSystem& files) {
  const fs::path temporary = beside(path, ".tmp");
  try {
    OutputFile(temporary, OutputFile::Mode::kTruncate, files).write(content);
    rename_or_fail(temporary, path, files);
  } catch (...) {
    clean_up(temporary, files);
    throw;
  }
}

void replace_path(const fs::path& finished, const fs::path& target, FileSystem& files) {
  const fs::path aside = beside(target, ".old");
  if (takes_one_rename(finished, target)) {
    rename_or_fail(finished, target, files);
  } else {
    remove_tree(aside, files);
    swap_paths(finished, target, aside, files);
  }
  sync_folder(target.parent_path(), files);
  clean_up(aside, files);  // only now: it may be all that there was at `target` when a crash came between two renames
}

void cut_file(const fs::path& path, int64_t bytes, FileSystem& files) {
  const ScopedDescriptor file(open_or_fail(path, O_WRONLY, "shorten", files), files);
  const int64_t size = size_of(file.value(), path);
  if (size < bytes) {
    throw UserError("cannot cut " + path.string() + " to " + plural(bytes, "byte") + ": it has only " + std::to_string(size));
  }
  if (uninterrupted([&] { return files.truncate(file.value(), bytes); }) != 0) fail_with_errno("shorten", path);
  sync_or_fail(file.value(), path, files);
}

void sync_file(const fs::path& path, FileSystem& files) {
  {
    const ScopedDescriptor file(open_or_fail(path, O_RDONLY, "write", files), files);
    sync_or_fail(file.value(), path, files);
  }
  sync_folder(path.parent_path(), files);
}

}  // namespace sluice
