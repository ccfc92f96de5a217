#include "cli/terminal/output_file.h"

#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {

void write_output(const std::filesystem::path& path, std::string_view text) {
  if (path.empty() || path == kStandardOutput) return print_text(text);
  if (path_kind(path) == PathKind::kOther)
    OutputFile(path).write(text);  // without waiting for a disk: there is none
  else
    write_file_atomically(real_path(path).value_or(path), text);
}

}  // namespace sluice::cli
