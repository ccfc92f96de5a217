#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Throws UserError naming the file where its first bytes are those of a pointer of Git LFS: who clones a repository without its
/// large files has a few lines of text in their place.
void refuse_lfs_pointer(std::string_view first_bytes, const std::string& file_name);

}  // namespace sluice
