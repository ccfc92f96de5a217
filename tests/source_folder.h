#pragma once

namespace sluice::tests {

/// The root of the checkout that the tests were built from. Not a macro of the compile command: then a second checkout would
/// compile every test anew.
const char* source_folder();

}  // namespace sluice::tests
