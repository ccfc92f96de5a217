#include "data/parquet.h"

#include <string>

#include "base/error.h"

namespace sluice::data {
namespace {

// As one word of a shell.
std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace

bool is_parquet(const std::filesystem::path& path) { return path.extension() == ".parquet"; }
bool begins_like_parquet(std::string_view bytes) { return bytes.starts_with("PAR1"); }

void refuse_parquet(const std::filesystem::path& path) {
  // Rows come in batches, so the size of the file does not matter. The library goes into a folder of its own: systems whose
  // Python belongs to the package manager let pip write nowhere else.
  const std::string program =
      "import json, sys, pyarrow.parquet as p; open(sys.argv[2], 'w').writelines(json.dumps(r, default=str) + '\\n' "
      "for b in p.ParquetFile(sys.argv[1]).iter_batches(1000) for r in b.to_pylist())";
  std::filesystem::path target = path;
  target.replace_extension(path.extension() == ".jsonl" ? ".rows.jsonl" : ".jsonl");  // never the file itself
  throw UserError(path.string() + " is Parquet, which is not read: convert it to JSONL",
                  "python3 -m pip install --target .pyarrow pyarrow && PYTHONPATH=.pyarrow python3 -c \"" + program + "\" " +
                      shell_word(path.string()) + " " + shell_word(target.string()));
}

}  // namespace sluice::data
