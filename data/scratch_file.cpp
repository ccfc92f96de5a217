#include "data/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files/open_file.h"

namespace sluice::data {
namespace fs = std::filesystem;
namespace {

fs::path scratch_folder(const fs::path& wanted) {
  if (!wanted.empty()) return wanted;
  if (const char* named = std::getenv("TMPDIR"); named != nullptr && *named != '\0') return named;
  return ::access("/var/tmp", W_OK) == 0 ? fs::path("/var/tmp") : fs::temp_directory_path();
}

}  // namespace

ScratchFile::ScratchFile(const fs::path& folder) : folder_(scratch_folder(folder)) {
  descriptor_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) open_and_unlink();
  if (descriptor_ < 0) fail("create a temporary file in");
  keep_room_beside(descriptor_);
}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : folder_(std::move(other.folder_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

void ScratchFile::write(std::string_view bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write a temporary file in");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string ScratchFile::read(uint64_t begin, size_t length) const {
  std::string bytes(length, '\0');
  for (size_t done = 0; done < length;) {
    const ssize_t count = ::pread(descriptor_, bytes.data() + done, length - done, static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read a temporary file in");
    SLUICE_CHECK(count > 0, "a row beyond the end of its file");
    done += static_cast<size_t>(count);
  }
  return bytes;
}

// For file systems that know no O_TMPFILE.
void ScratchFile::open_and_unlink() {
  std::string name = (folder_ / "sluice-XXXXXX").string();
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ >= 0) ::unlink(name.c_str());
}

void ScratchFile::fail(const std::string& action) const {
  throw UserError("cannot " + action + " " + folder_.string() + ": " + std::strerror(errno),
                  "compressed and columnar data is unpacked there; TMPDIR names another folder");
}

}  // namespace sluice::data
