// How long do the rows of a file take to begin with, in which memory, and how long takes one of a shuffled epoch?
//
// Asked by bench/data_start.py: rows FILE DRAWS FIELD... prints one JSON object.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "data/dataset.h"

namespace sluice::bench {
namespace {

// Of all threads of this process, in user and in system.
double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto in_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return in_seconds(used.ru_utime) + in_seconds(used.ru_stime);
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// A line of /proc/self/status, in bytes: VmHWM is the most that was resident, RssAnon what is now without pages of files.
int64_t memory(const std::string& name) {
  const std::string status = read_file("/proc/self/status");
  return std::atoll(status.c_str() + status.find(name + ":") + name.size() + 1) * 1024;
}

Json measure(const std::string& path, int64_t draws, const std::vector<data::JsonlField>& fields) {
  const double begin = seconds(), worked = processor_seconds();
  data::Dataset rows({.paths = {path}, .weights = {}, .shuffle = true, .epochs = 0, .seed = 1}, fields);
  const double started = seconds(), at_start = processor_seconds();
  const int64_t most = memory("VmHWM");
  rows.row_at(0);  // shuffles the epoch
  const double shuffled = seconds();
  size_t bytes = 0;
  for (int64_t i = 0; i < draws; ++i) bytes += rows.values(*rows.row_at(static_cast<uint64_t>(i))).front().size();
  const double drawn = seconds();
  return {{"rows", rows.rows()},
          {"start_seconds", started - begin},
          {"start_processor_seconds", at_start - worked},
          {"start_bytes", most},
          {"shuffle_seconds", shuffled - started},
          {"draw_seconds", (drawn - shuffled) / static_cast<double>(draws)},
          {"bytes", memory("VmHWM")},
          {"anonymous_bytes", memory("RssAnon")},
          {"checked", bytes > 0}};
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s FILE DRAWS FIELD...\n", argv[0]);
    return 64;
  }
  try {
    std::vector<sluice::data::JsonlField> fields;
    for (int i = 3; i < argc; ++i) fields.push_back({argv[i], std::string(argv[i]) + "_field"});
    std::printf("%s\n", sluice::bench::measure(argv[1], std::atoll(argv[2]), fields).dump().c_str());
  } catch (const sluice::UserError& error) {
    std::fprintf(stderr, "%s", error.what());
    return 1;
  }
  return 0;
}
