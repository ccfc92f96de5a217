#include "base/error.h"
#include "models/config/config.h"
#include "tests/fuzz/target.h"

// A config.json. What it accepts must be usable sizes.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const sluice::fuzz::InputFolder folder;
  folder.write("config.json", sluice::fuzz::text_of(data, size));
  try {
    const auto config = sluice::models::read_config(folder.path());
    SLUICE_CHECK(config.layers > 0 && config.heads > 0 && config.kv_heads > 0 && config.heads % config.kv_heads == 0, "heads");
    SLUICE_CHECK(config.rotary_dims() >= 0 && config.rotary_dims() <= config.head_dim, "rotary dimensions");
    SLUICE_CHECK(config.mixtures() <= config.layers && (config.mixtures() > 0) == config.experts.any(), "mixtures");
    SLUICE_CHECK(config.windows.empty() || config.windows.size() == static_cast<size_t>(config.layers), "windows");
  } catch (const sluice::UserError&) {
  }
  return 0;
}
