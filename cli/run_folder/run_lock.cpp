#include "cli/run_folder/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string owner_json() {
  const Json owner = {{"pid", ::getpid()}, {"host", host_name()}, {"since", utc_text(std::time(nullptr))}};
  return owner.dump() + "\n";
}

// What the lock file says about its owner. It may be empty still, and never is a reason to fail.
[[noreturn]] void refuse(const fs::path& lock) {
  std::string who = "another process", help = "wait until it ends";
  try {
    const Json owner = read_json(lock);
    const std::string pid = std::to_string(owner.at("pid").get<long long>()), host = owner.at("host").get<std::string>();
    who = "process " + pid + " on " + host + " since " + owner.at("since").get<std::string>();
    help += host == host_name() ? ", or end it: kill " + pid : ", or end it there: kill " + pid;
    help += " saves the run";
  } catch (const std::exception&) {
  }
  throw UserError("the run folder " + lock.parent_path().string() + " is in use by " + who, help);
}

bool flock_without_waiting(int descriptor) {
  int result = 0;
  do result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

// A process that releases the lock removes the file, so one that has opened it before and gets the lock after has a file without
// a name: then it looks again.
RunLock::RunLock(const fs::path& run_folder) : path_(run_folder / engine::kLockFile) {
  while (!open_and_lock()) ::close(descriptor_);
  const std::string owner = owner_json();
  const bool written = ::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, owner.data(), owner.size(), 0) >= 0;
  static_cast<void>(written);  // on a full disk the lock holds all the same
}

bool RunLock::open_and_lock() {
  // What a stranger's run folder has there, such as a link to another file, is neither followed nor waited for.
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (descriptor_ < 0) {
    const std::string reason = errno == ELOOP ? "it is a symbolic link" : std::strerror(errno);
    throw UserError("cannot open " + path_.string() + ": " + reason, "the run folder must be writable");
  }
  if (name_kind(path_) != PathKind::kFile && name_kind(path_) != PathKind::kNothing) {
    ::close(std::exchange(descriptor_, -1));
    throw UserError("cannot lock the run folder: " + path_.string() + " is not an ordinary file", "remove it");
  }
  if (flock_without_waiting(descriptor_)) return is_current();
  const int error = errno;
  if (error == EWOULDBLOCK) {
    ::close(descriptor_);
    refuse(path_);
  }
  std::fprintf(stderr, "warning: the file system of %s cannot lock files (%s): nothing keeps a second process from this run\n\n",
               printable(path_.parent_path().string()).c_str(), std::strerror(error));
  return true;
}

void RunLock::release() {
  if (descriptor_ < 0) return;
  if (is_current()) ::unlink(path_.c_str());
  ::close(descriptor_);
  descriptor_ = -1;
}

bool RunLock::is_current() const {
  struct stat mine {
  }, named{};
  return ::fstat(descriptor_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

bool is_locked_by(int64_t pid, const fs::path& run_folder) {
  try {
    const Json owner = read_json(run_folder / engine::kLockFile);
    return owner.at("pid").get<int64_t>() == pid && owner.at("host").get<std::string>() == host_name();
  } catch (const std::exception&) {
    return false;  // not there, or not written yet
  }
}

}  // namespace sluice::cli
