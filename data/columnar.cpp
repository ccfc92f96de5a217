#include "data/columnar.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "base/files/git_lfs.h"
#include "base/files/path_kind.h"
#include "base/text/shown_text.h"
#include "data/embedded.h"
#include "data/gzip.h"
#include "data/row_meter.h"
#include "data/zstd.h"

namespace sluice::data {
namespace fs = std::filesystem;
namespace {

constexpr std::array<const char*, 3> kNames{".parquet", ".arrow", ".feather"};
constexpr size_t kShownBytes = 16;
constexpr const char* kModule = "libsluice_columnar.so";
constexpr const char* kSetUp = "./rlhf-run --setup --parquet";

// "pyarrow==26.0.1": what the module is linked with.
std::string package() { return std::string(embedded::kPyarrow.substr(0, embedded::kPyarrow.find(' '))); }

fs::path module_path() {
  Dl_info info{};
  SLUICE_CHECK(::dladdr(reinterpret_cast<const void*>(&is_columnar_name), &info) != 0, "this code is in no library");
  return fs::path(info.dli_fname).parent_path() / kModule;
}

// Whether a file of the format that its name says may begin so; an encrypted one has other bytes, and the library says that it is
// encrypted. Of a file that ends before: whether it might have gone on so.
bool may_begin_so(const fs::path& path, std::string_view bytes) {
  const auto agrees = [&](std::string_view magic) { return bytes.starts_with(magic.substr(0, bytes.size())); };
  return agrees("PAR1") || agrees("PARE") || (path.extension() != ".parquet" && agrees("ARROW1"));
}

bool begins_as_json(std::string_view bytes) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[');
}

// What files of texts begin as, and the name by which folders find them.
struct TextFormat {
  const char* name;
  const char* ending;
};

std::optional<TextFormat> text_format(std::string_view bytes) {
  if (begins_as_json(bytes)) return TextFormat{"JSON", ".jsonl"};
  if (is_gzip(bytes)) return TextFormat{"gzip", ".jsonl.gz"};
  if (is_zstd(bytes)) return TextFormat{"zstd", ".jsonl.zst"};
  return std::nullopt;
}

// Of a file that only its name makes a columnar one: what it is instead, and what to do about it.
[[noreturn]] void refuse_other_format(const fs::path& path, std::string_view bytes) {
  const std::string what = path.string() + " is no " + (path.extension() == ".parquet" ? "Parquet" : "Arrow") +
                           " file, although its name says so: it begins ";
  const auto text = text_format(bytes);
  if (!text)
    throw UserError(what + "with " + shown_text(bytes.substr(0, kShownBytes)),
                    "the file is damaged, or another one was loaded in its place; fetch it again");
  const fs::path renamed = fs::path(path.filename()).replace_extension(text->ending);
  throw UserError(what + "as " + text->name + " does", "if it holds rows of JSON, call it " + renamed.string());
}

// The pyarrow beside the torch that this process has loaded: where both are packages of one Python. Empty: it has loaded none.
fs::path pyarrow_beside_torch() {
  fs::path found;
  const auto look = [](dl_phdr_info* info, size_t, void* result) {
    const fs::path library = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    if (library.filename() != "libtorch_cpu.so") return 0;
    *static_cast<fs::path*>(result) = library.parent_path().parent_path().parent_path() / "pyarrow";
    return 1;
  };
  ::dl_iterate_phdr(look, &found);
  return found;
}

// Arrow is loaded where the module itself says, which the build of a checkout has told it, or else beside torch: a library that
// is there already, by the name that the module asks for, is not looked for again.
void* load(const fs::path& module) {
  if (void* const library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  const fs::path folder = pyarrow_beside_torch();
  for (const char* name : {"libarrow.so.", "libparquet.so."}) {
    if (folder.empty() || !is_folder(folder)) break;
    for (const fs::path& entry : entries_of(folder)) {
      if (entry.filename().string().starts_with(name)) ::dlopen(entry.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
  return ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

bool is_columnar_name(const fs::path& path) { return std::ranges::find(kNames, path.extension()) != kNames.end(); }

std::optional<ColumnarFormat> columnar_format(const fs::path& path, std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("PAR1")) return ColumnarFormat::kParquet;
  if (bytes.starts_with("ARROW1")) return ColumnarFormat::kArrowFile;
  if (bytes.starts_with("\xFF\xFF\xFF\xFF"sv)) return ColumnarFormat::kArrowStream;
  if (bytes.starts_with("FEA1"))
    throw UserError(path.string() + " is of the first version of Feather, which is not read",
                    "pyarrow.feather.read_table() reads it, and write_feather() writes the second version");
  if (!is_columnar_name(path)) return std::nullopt;
  refuse_lfs_pointer(bytes, path.string());
  if (!may_begin_so(path, bytes)) refuse_other_format(path, bytes);
  return path.extension() == ".parquet" ? ColumnarFormat::kParquet : ColumnarFormat::kArrowFile;
}

const ColumnarLibrary& columnar_library(const fs::path& path) { return columnar_library(path, module_path()); }

const ColumnarLibrary& columnar_library(const fs::path& path, const fs::path& module) {
  const std::string what =
      path.string() + (path.extension() == ".parquet" ? " is a Parquet file" : " is an Arrow or Parquet file");
  if (!is_there(module))
    throw UserError(what + ", which this build does not read yet",
                    std::string(kSetUp) + " fetches the library that reads it (55 MB) and builds what uses it");
  void* const library = load(module);
  if (library == nullptr)
    throw UserError(what + ", and the library that reads it cannot be loaded: " + ::dlerror(),
                    std::string("python3 -m pip install ") + package() + ", beside torch; in a checkout " + kSetUp);
  const auto get = reinterpret_cast<const ColumnarLibrary* (*)()>(::dlsym(library, kColumnarEntry));
  if (get == nullptr || get()->version != kColumnarVersion)
    throw UserError(module.string() + " is of another build than this program", "build again: ./rlhf-run --setup --parquet");
  return *get();
}

std::unique_ptr<ColumnarFile> open_columnar(const fs::path& path, ColumnarFormat format,
                                            const std::vector<ColumnarField>& fields) {
  return columnar_library(path).open(path, format, fields);
}

}  // namespace sluice::data
