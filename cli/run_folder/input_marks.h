#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// By what they are of, such as "path of [nodes.prompts] (FILE)": a mark of the files of data, of scorers and of tools that a
/// node names, but for those in `home`. What cannot be read has an empty one.
using Marks = std::map<std::string, std::string>;
Marks marks_of_files(const engine::Plan& plan, const engine::PlanNode& node, const std::filesystem::path& home);

/// What the files that a run reads were like when it began: `inputs.json` of its folder has a mark (file_marks.h) of the files
/// of each model, and of the files of data, of scorers and of tools that nodes name. By rank 0.
void note_inputs(const std::filesystem::path& run_folder, const engine::Plan& plan);

/// Throws UserError where some of them are others now, under the same name: a run that goes on would be another one. What is
/// not noted, or cannot be read, is not compared.
void refuse_changed_inputs(const std::filesystem::path& run_folder, const engine::Plan& plan);

}  // namespace sluice::cli
