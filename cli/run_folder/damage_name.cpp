#include "cli/run_folder/damage_name.h"

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "base/numbers/crc32c.h"
#include "base/text/strings.h"
#include "models/folder/safetensors_header.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// The first tensor whose bytes are not those that its header tells the checksum of. Nothing where all are: the header has
// changed. Throws UserError when it has changed so much that it is none any more.
std::optional<std::string> changed_tensor(const fs::path& path) {
  const MappedFile file(path);
  const std::string_view bytes{reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  for (const models::TensorEntry& tensor : models::parse_safetensors_header(file.bytes(), path.string())) {
    const std::string_view data = bytes.substr(tensor.begin, tensor.end - tensor.begin);
    if (tensor.checksum && crc32c(data) != *tensor.checksum) return tensor.name;
  }
  return std::nullopt;
}

std::string changed_part(const fs::path& path) {
  try {
    const auto tensor = changed_tensor(path);
    return tensor ? "tensor " + sluice::quoted(*tensor) : std::string("its header");
  } catch (const UserError&) {
    return "its header";
  }
}

}  // namespace

std::string damage_text(const fs::path& folder, const engine::Damage& damage) {
  const std::string file = damage.file.lexically_relative(folder).string();
  if (!damage.whole || damage.file.extension() != ".safetensors") return file + " " + damage.what;
  return file + ": " + changed_part(damage.file) + " " + damage.what;
}

}  // namespace sluice::cli
