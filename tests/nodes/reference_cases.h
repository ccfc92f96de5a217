#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/json/json.h"
#include "tests/source_folder.h"

namespace sluice::nodes {

/// The folder with test data of other projects: SLUICE_TEST_DATA, or shared/data beside the repository.
inline std::filesystem::path test_data() {
  const char* configured = std::getenv("SLUICE_TEST_DATA");
  return configured != nullptr ? std::filesystem::path(configured)
                               : std::filesystem::path(tests::source_folder()) / "../shared/data";
}

/// The case `id` of numeric_refs/cases.json: inputs and expectations of the unit tests of other RLHF systems. Nothing where the
/// data is absent; under CI that is a failure.
inline std::optional<Json> reference_case(const std::string& id) {
  const auto path = test_data() / "numeric_refs/cases.json";
  if (!std::filesystem::exists(path)) {
    if (std::getenv("CI") != nullptr) ADD_FAILURE() << path << " is missing";
    return std::nullopt;
  }
  const Json file = read_json(path);
  for (const Json& entry : file["cases"]) {
    if (entry["id"] == id) return entry;
  }
  ADD_FAILURE() << "no reference case " << id;
  return std::nullopt;
}

}  // namespace sluice::nodes
