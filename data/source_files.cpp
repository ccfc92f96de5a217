#include "data/source_files.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "base/error.h"
#include "base/files/file_part.h"
#include "base/files/path_kind.h"
#include "data/columnar.h"

namespace sluice::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* kJsonl = "*.jsonl, *.jsonl.gz, *.jsonl.zst";

bool is_jsonl(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") || name.ends_with(".jsonl.zst");
}

// What map() and filter() of Hugging Face's datasets leave beside the data set itself.
bool is_cache(const fs::path& path) { return path.filename().string().starts_with("cache-") && path.extension() == ".arrow"; }

// Of one kind, since the same rows often lie in a folder in two: lines, else Parquet, else Arrow.
std::vector<fs::path> files_of_folder(const fs::path& folder) {
  std::array<std::vector<fs::path>, 3> kinds;
  for (const fs::path& entry : entries_of(folder)) {
    const size_t kind = is_jsonl(entry) ? 0 : entry.extension() == ".parquet" ? 1 : is_columnar_name(entry) ? 2 : kinds.size();
    if (kind < kinds.size() && is_file(entry) && !is_cache(entry)) kinds[kind].push_back(entry);
  }
  const auto found = std::ranges::find_if(kinds, [](const auto& files) { return !files.empty(); });
  if (found == kinds.end())
    throw UserError("the folder " + folder.string() + " holds no " + kJsonl + ", *.parquet, *.arrow or *.feather",
                    "name the file, or a pattern of files");
  return *found;
}

// What glob(3) found, freed with it.
struct Matches {
  explicit Matches(const std::string& pattern) { code = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found); }
  ~Matches() { ::globfree(&found); }
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;

  glob_t found{};
  int code = 0;
};

std::vector<fs::path> files_that_match(const fs::path& pattern) {
  const Matches matches(pattern.string());
  std::vector<fs::path> files;
  for (size_t i = 0; matches.code == 0 && i < matches.found.gl_pathc; ++i) {
    if (is_file(matches.found.gl_pathv[i])) files.emplace_back(matches.found.gl_pathv[i]);
  }
  if (files.empty()) throw UserError("no file matches " + pattern.string());
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> files_of(const fs::path& path) {
  const PathKind kind = path_kind(path);
  if (kind == PathKind::kFolder) return files_of_folder(path);
  if (kind == PathKind::kNothing) {
    if (is_pattern(path)) return files_that_match(path);
    throw UserError("there is no file " + path.string());
  }
  // A pipe can be read once only, and rows are read in any order.
  if (kind != PathKind::kFile) throw UserError(path.string() + " is no file", "a file that stays on the disk is expected");
  return {path};
}

// Says what is missing before a run does, or that the name is wrong.
void expect_columnar(const fs::path& file) {
  columnar_format(file, read_part_of_file(file, 0, kMostMagic));
  columnar_library(file);
}

}  // namespace

bool is_pattern(const fs::path& path) { return path.string().find_first_of("*?[") != std::string::npos; }

std::vector<fs::path> source_files(const std::vector<fs::path>& paths) {
  std::vector<fs::path> all;
  std::set<fs::path> seen;
  for (const fs::path& path : paths) {
    for (const fs::path& file : files_of(path)) {
      if (is_columnar_name(file)) expect_columnar(file);
      std::error_code ignored;
      if (!seen.insert(fs::weakly_canonical(file, ignored)).second)
        throw UserError(file.string() + " is named twice", "its rows would count twice; leave one of them out");
      all.push_back(file);
    }
  }
  return all;
}

}  // namespace sluice::data
