#include "base/files/git_lfs.h"

#include "base/error.h"

namespace sluice {

void refuse_lfs_pointer(std::string_view first_bytes, const std::string& file_name) {
  if (!first_bytes.starts_with("version https://git-lfs")) return;
  throw UserError(file_name + " is a pointer of Git LFS, not the file itself", "git lfs pull, in its repository");
}

}  // namespace sluice
