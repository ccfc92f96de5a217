#include "nodes/scorers/code/sandbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/scorers/code/seccomp_filter.h"

namespace sluice::nodes {
namespace {

using Clock = Subprocess::Clock;

constexpr uid_t kNobody = 65534;
constexpr std::chrono::seconds kTrialTime{60};
constexpr size_t kTrialOutput = 1 << 16;

// A file without a name, which a process can inherit.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : descriptor_(::memfd_create("sluice", MFD_CLOEXEC)) {
    for (size_t written = 0; descriptor_ >= 0 && written < content.size();) {
      const ssize_t count = ::write(descriptor_, content.data() + written, content.size() - written);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw UserError(std::string("no memory for a file of a sandbox: ") + std::strerror(errno));
      written += static_cast<size_t>(count);
    }
    if (descriptor_ < 0) throw UserError(std::string("no file for a sandbox: ") + std::strerror(errno));
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

void wait_for_end(Subprocess& process) {
  Subprocess* const only = &process;
  for (const auto until = Clock::now() + kTrialTime; !process.ended() && !process.overflowed() && Clock::now() < until;) {
    Subprocess::exchange({&only, 1}, until);
  }
  process.kill();
}

// Where an interpreter that is named by its path has its libraries.
std::vector<std::string> folders_of(const std::string& python) {
  if (python.find('/') == std::string::npos) return {};
  Subprocess process(
      {.arguments = {python, "-c", "import sys; print(sys.base_prefix); print(sys.prefix)"}, .most_output = kTrialOutput});
  wait_for_end(process);
  if (!process.succeeded()) throw UserError(sluice::quoted(python) + " does not run: it " + process.how_it_ended());
  std::vector<std::string> folders;
  while (const auto line = process.take_line()) {
    if (!line->starts_with("/usr/") && *line != "/usr") folders.push_back(*line);
  }
  return folders;
}

void append(std::vector<std::string>& to, std::initializer_list<std::string> words) { to.insert(to.end(), words); }

// /bin, /lib and the like as this machine has them: links into /usr, or folders.
void add_system(std::vector<std::string>& words) {
  append(words, {"--ro-bind", "/usr", "/usr"});
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    const std::filesystem::path path = std::string("/") + name;
    std::error_code none;
    if (std::filesystem::is_symlink(path, none)) {
      append(words, {"--symlink", std::filesystem::read_symlink(path, none).string(), path.string()});
    } else if (std::filesystem::is_directory(path, none)) {
      append(words, {"--ro-bind", path.string(), path.string()});
    }
  }
  for (const char* path : {"/etc/ld.so.cache", "/etc/alternatives"}) append(words, {"--ro-bind-try", path, path});
}

}  // namespace

Sandbox::Sandbox(SandboxOptions options) : options_(std::move(options)), filter_(seccomp_filter()) {
  constexpr const char* kNever = "; code that nobody has read is never run without a sandbox";
  if (filter_.empty()) throw UserError(std::string("there is no filter of system calls for this kind of processor") + kNever);
  if (!find_program(options_.bubblewrap)) {
    throw UserError("bubblewrap was not found: there is no program " + sluice::quoted(options_.bubblewrap) + kNever,
                    "apt-get install bubblewrap, or give its path with the parameter bubblewrap");
  }
  folders_ = folders_of(options_.python);
  try_it();
}

void Sandbox::try_it() const {
  const auto process = start({"-c", "print('works')"}, {}, kTrialOutput);
  wait_for_end(*process);
  if (process->succeeded() && process->take_output() == "works\n") return;
  const std::string said(trim(process->errors()));
  throw UserError(
      "the sandbox of bubblewrap does not work here: " + (said.empty() ? "it " + process->how_it_ended() : said) +
          "; code that nobody has read is never run without one",
      "it needs bubblewrap 0.7 or newer, user namespaces (in a container: seccomp and AppArmor profiles that allow them) and "
      "an interpreter that every user may read");
}

std::unique_ptr<Subprocess> Sandbox::start(const std::vector<std::string>& arguments, const std::vector<File>& files,
                                           size_t most_output) const {
  std::vector<std::string> words{options_.bubblewrap};
  append(words, {"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"});
  append(words, {"--die-with-parent", "--new-session", "--cap-drop", "ALL"});
  append(words, {"--uid", std::to_string(kNobody), "--gid", std::to_string(kNobody), "--hostname", "sandbox"});
  add_system(words);
  for (const std::string& folder : folders_) append(words, {"--ro-bind", folder, folder});
  append(words, {"--proc", "/proc", "--dev", "/dev", "--size", std::to_string(options_.tmp_bytes), "--tmpfs", "/tmp"});

  std::vector<std::unique_ptr<MemoryFile>> opened;
  for (const File& file : files) {
    opened.push_back(std::make_unique<MemoryFile>(file.content));
    append(words, {"--ro-bind-data", std::to_string(opened.back()->descriptor()), file.path});
  }
  opened.push_back(std::make_unique<MemoryFile>(filter_));
  append(words, {"--seccomp", std::to_string(opened.back()->descriptor())});
  append(words, {"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--", options_.python, "-s", "-B"});
  words.insert(words.end(), arguments.begin(), arguments.end());

  SubprocessOptions options;
  options.arguments = std::move(words);
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin",
                         "HOME=/tmp",
                         "LANG=C.UTF-8",
                         "PYTHONHASHSEED=0",
                         "OMP_NUM_THREADS=1",
                         "OPENBLAS_NUM_THREADS=1"};
  for (const auto& file : opened) options.inherited.push_back(file->descriptor());
  if (::geteuid() == 0) options.user = kNobody;
  options.most_output = most_output;
  return std::make_unique<Subprocess>(std::move(options));
}

}  // namespace sluice::nodes
