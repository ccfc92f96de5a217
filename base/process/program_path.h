#pragma once

#include <filesystem>

namespace sluice {

/// The file of this program, after all links. Empty where the system does not tell.
std::filesystem::path program_path();

/// The folder of what comes with the program, `../share/sluice` from its own: an installed tree and a build tree both have it,
/// and may be moved as a whole. Empty where there is none.
std::filesystem::path share_folder();

}  // namespace sluice
