#pragma once

#include <string>
#include <vector>

#include "engine/contract/params/param_table.h"

namespace sluice::engine {

/// A file that a table names, or a folder or pattern of files, and its place in the table.
struct NamedFile {
  std::string path;  // as messages call it; of a pattern what is in front of its first *, ? or [
  bool is_pattern = false;
  SourceSpan where;
};

/// What the keys of `table` name whose kind is a path, or several. What is no path is left out; binding the table has told of it.
std::vector<NamedFile> named_files(const Table& table, const ParamTable& params);

/// The place of the one of `files` that `message` is about: it names that file, or what lies in that folder or matches that
/// pattern. Unknown where it names none of them.
SourceSpan place_named_in(const std::string& message, const std::vector<NamedFile>& files);

}  // namespace sluice::engine
