#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "data/columnar_file.h"

namespace sluice::data {

/// What a columnar file is called: *.parquet, *.arrow and *.feather.
bool is_columnar_name(const std::filesystem::path& path);

/// Bytes at the beginning of a file that tell what it is, or fewer where it ends before.
constexpr size_t kMostMagic = 64;

/// What a file is that begins so; nothing for a file of texts. Of one that ends before its bytes tell the name counts. Throws
/// UserError for what has such a name and is something else, as JSON lines or a page that says that there is no such file, and
/// for what cannot be read: Feather's first version, a pointer of Git LFS.
std::optional<ColumnarFormat> columnar_format(const std::filesystem::path& path, std::string_view bytes);

/// Loads the library, for `path`. Throws UserError that names the file, and how to get what is missing. Calling it again is
/// cheap.
const ColumnarLibrary& columnar_library(const std::filesystem::path& path);

/// Likewise with that module, libsluice_columnar.so of another folder.
const ColumnarLibrary& columnar_library(const std::filesystem::path& path, const std::filesystem::path& module);

/// The fields of a columnar file; see ColumnarFile.
std::unique_ptr<ColumnarFile> open_columnar(const std::filesystem::path& path, ColumnarFormat format,
                                            const std::vector<ColumnarField>& fields);

}  // namespace sluice::data
