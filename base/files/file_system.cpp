#include "base/files/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace sluice {
namespace fs = std::filesystem;
namespace {

class Disk final : public FileSystem {
 public:
  int open(const fs::path& path, int flags) override { return ::open(path.c_str(), flags, 0644); }
  ssize_t write(int descriptor, const void* bytes, size_t size) override { return ::write(descriptor, bytes, size); }
  int truncate(int descriptor, off_t size) override { return ::ftruncate(descriptor, size); }
  int sync(int descriptor) override { return ::fsync(descriptor); }
  int close(int descriptor) override { return ::close(descriptor); }
  int rename(const fs::path& from, const fs::path& to) override { return ::rename(from.c_str(), to.c_str()); }
  int exchange(const fs::path& one, const fs::path& other) override {
    return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
  }
  int make_folder(const fs::path& path) override { return ::mkdir(path.c_str(), 0777); }
  int make_link(const fs::path& target, const fs::path& path) override { return ::symlink(target.c_str(), path.c_str()); }
  int remove_file(const fs::path& path) override { return ::unlink(path.c_str()); }
  int remove_folder(const fs::path& path) override { return ::rmdir(path.c_str()); }
};

}  // namespace

FileSystem& disk() {
  static Disk disk;  // without state
  return disk;
}

}  // namespace sluice
