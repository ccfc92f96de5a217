#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::cli {

/// What tells files from others of the same name, in a millisecond or so each, whatever their size: names, sizes, and a
/// checksum of the first megabyte of each and of blocks spread over the rest. So a change of some bytes in a large file may go
/// unseen. Throws UserError for what cannot be read.
std::string mark_of_files(std::vector<std::filesystem::path> files);

}  // namespace sluice::cli
