#pragma once

#include <filesystem>

#include "base/error.h"
#include "base/files/confined_file_system.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "cli/run_folder/file_of_run.h"

namespace sluice::cli {

/// Writes what a run notes of itself into a file of its folder, as JSON. Throws UserError.
template <class Value>
void note_value(const std::filesystem::path& run_folder, const char* file, const Value& value) {
  ConfinedFileSystem files({run_folder});
  write_file_atomically(run_folder / file, Json(value).dump(2) + "\n", files);
}

/// What is noted there; a value without anything where that is not there, cannot be read, or is something else.
template <class Value>
Value noted_value(const std::filesystem::path& run_folder, const char* file) {
  const auto path = file_of_run(run_folder, file);
  if (!path) return {};
  try {
    return read_json(*path).get<Value>();
  } catch (const UserError&) {
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace sluice::cli
