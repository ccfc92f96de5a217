#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.h"

namespace sluice::dsl {

/// A pipeline that comes with the program: `builtin:grpo` is pipelines/grpo.toml of its share folder
/// (base/process/program_path.h).
struct BuiltinPipeline {
  std::string name;
  std::filesystem::path file;
};

/// All of them, in order of name; none where the program has no such folder.
std::vector<BuiltinPipeline> builtin_pipelines();

/// The name after `builtin:`. Nothing for what names a file.
std::optional<std::string> builtin_name(const std::string& written);

/// `builtin:NAME` where `file` is called as one of them, with or without .toml; empty: none is called so.
std::string builtin_called(const std::filesystem::path& file);

/// The file of that name. Nothing, and a problem at `where` with all names that there are, where there is none.
std::optional<std::filesystem::path> builtin_file(const std::string& name, const SourceSpan& where, Problems& problems);

}  // namespace sluice::dsl
