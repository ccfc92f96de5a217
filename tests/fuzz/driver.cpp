// usage: TARGET [-runs=N] [-seed=N] [-words=FILE] CORPUS...     N damaged inputs made of the files and folders of CORPUS
//        TARGET FILE                                           that input alone (with -runs=0)
//
// Stands in for libFuzzer where the compiler has none: no coverage guides it, but it repeats, and it runs under every sanitizer.
// The input at hand is kept in TARGET.input in the working directory while it runs, so that whatever ends the program leaves it
// there. An input that takes longer than the limit of time, or more memory than the limit, ends the program like a crash.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/target.h"
#include "tests/sanitized.h"

namespace {

namespace fs = std::filesystem;

using sluice::tests::kSanitized;

constexpr int kSecondsAnInput = kSanitized ? 5 : 1;  // of processor time; sanitized code is several times slower
constexpr bool kMemoryIsLimited = !kSanitized;       // its shadow memory is not the program's
constexpr rlim_t kMostBytes = rlim_t{256} << 20;     // beyond what the program takes before the first input

struct Arguments {
  uint64_t runs = 1000, seed = 1;
  std::vector<std::string> words;
  std::vector<std::string> corpus;
};

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::vector<std::string> corpus_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {content_of(path)};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);  // the order of a folder is not the same everywhere
  std::vector<std::string> inputs;
  for (const fs::path& file : files) inputs.push_back(content_of(file));
  return inputs;
}

Arguments arguments_of(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string value = values[i];
    if (value.starts_with("-runs="))
      arguments.runs = std::strtoull(value.c_str() + 6, nullptr, 10);
    else if (value.starts_with("-seed="))
      arguments.seed = std::strtoull(value.c_str() + 6, nullptr, 10);
    else if (value.starts_with("-words="))
      arguments.words = lines_of(value.substr(7));
    else
      for (std::string& input : corpus_of(value)) arguments.corpus.push_back(std::move(input));
  }
  return arguments;
}

// SIGPROF when an input has used its time: its default action ends the program.
void give_time(int seconds) {
  const itimerval time{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &time, nullptr);
}

void limit_memory() {
  if (!kMemoryIsLimited) return;
  std::ifstream status("/proc/self/statm");
  rlim_t pages = 0;
  status >> pages;
  const rlim_t most = pages * 4096 + kMostBytes;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  ::setrlimit(RLIMIT_AS, &limit);
}

/// The input at hand, in a file that outlives the program unless it ends well.
class KeptInput {
 public:
  explicit KeptInput(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) {}
  ~KeptInput() {
    ::close(file_);
    ::unlink(path_.c_str());
  }
  KeptInput(const KeptInput&) = delete;
  KeptInput& operator=(const KeptInput&) = delete;

  // Written over, not replaced: file systems flush a file that is cut to nothing and written anew.
  void keep(const std::string& input) {
    const bool kept = ::pwrite(file_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()) &&
                      ::ftruncate(file_, static_cast<off_t>(input.size())) == 0;
    if (!kept) std::fprintf(stderr, "%s cannot be written\n", path_.c_str()), std::exit(2);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_;
};

void run(const std::string& input, KeptInput& kept) {
  kept.keep(input);
  give_time(kSecondsAnInput);
  try {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "an exception that is no UserError: %s (the input is in %s)\n", error.what(), kept.path().c_str());
    std::exit(1);
  }
  give_time(0);
}

}  // namespace

int main(int count, char** values) {
  const Arguments arguments = arguments_of(count, values);
  if (arguments.corpus.empty()) {
    std::fprintf(stderr, "usage: %s [-runs=N] [-seed=N] [-words=FILE] CORPUS...\n", values[0]);
    return 2;
  }
  KeptInput kept(fs::path(values[0]).filename().string() + ".input");
  for (const std::string& input : arguments.corpus) run(input, kept);
  limit_memory();
  const sluice::fuzz::Mutator mutator(arguments.corpus, arguments.words, arguments.seed);
  for (uint64_t number = 0; number < arguments.runs; ++number) run(mutator.input(number), kept);
  std::printf("%zu inputs and %llu damaged ones\n", arguments.corpus.size(), static_cast<unsigned long long>(arguments.runs));
  return 0;
}
