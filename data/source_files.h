#pragma once

#include <filesystem>
#include <vector>

namespace sluice::data {

/// True if `path` is a pattern (it has *, ? or [), which names the files that it matches.
bool is_pattern(const std::filesystem::path& path);

/// The data files that `paths` name, in their order. Each path is one of
///
///   a file       data/train.jsonl, data/train.jsonl.gz, data/train.json, data/train.parquet
///   a folder     all *.jsonl, *.jsonl.gz and *.jsonl.zst that lie in it, else all *.parquet, else all *.arrow and *.feather but
///                the cache-*.arrow of datasets; sorted by name; not those of its subfolders
///   a pattern    data/part-*.jsonl: all files that match, sorted by name. * and ? match no slash. A file of that very name
///                comes first
///
/// Throws UserError for a path that names no file, for a file that is named twice, and for one whose name says that it is
/// columnar where it is none, or the library for those is missing (see columnar.h).
std::vector<std::filesystem::path> source_files(const std::vector<std::filesystem::path>& paths);

}  // namespace sluice::data
