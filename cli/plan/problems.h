#pragma once

#include <string>

#include "base/problem.h"

namespace sluice::cli {

/// {"problems": [{"kind", "severity", "file", "line", "column", "message", "caret", "notes", "help"}], "ok": no error among
/// them}, in the order in which the text shows them. line and column count from 1 (column in code points); 0: the file as a
/// whole, or no place known, where file is empty. Bytes that are not UTF-8 are shown as U+FFFD. Without a newline at the end.
std::string problems_json(const Problems& problems);

}  // namespace sluice::cli
