#pragma once

#include <filesystem>

namespace sluice::engine {

/// Whether the file begins as a program or shared library of this kind of machine does, and ends before all of it that its header
/// names: dlopen() would map what is not there, and the first look at it end the process. False of any other file, and of one
/// shorter than a header: dlopen() says what is wrong with it. Throws UserError where it cannot be read.
bool is_cut_off(const std::filesystem::path& path);

}  // namespace sluice::engine
