#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Why `path` cannot name something inside a folder, whoever wrote it: a pipeline, a manifest, an index of tensors. Empty: it
/// can. Such a path is relative, has no "..", no ".", no empty part, no control character, is UTF-8, and no part is longer than
/// file systems take. That no symbolic link leads out of the folder is not seen from the name; see ConfinedFileSystem.
std::string fault_of_inner_path(std::string_view path);

}  // namespace sluice
