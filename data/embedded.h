#pragma once

#include <string_view>

// Texts that the build puts into the library; see sluice_embed() in cmake/Modules.cmake.
namespace sluice::data::embedded {

extern const std::string_view kPyarrow;  // cmake/pyarrow.txt

}  // namespace sluice::data::embedded
