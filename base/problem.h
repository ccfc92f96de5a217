#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// A text that problems can point into: a pipeline file, a `--set` argument, a JSONL file.
struct SourceText {
  std::string name;  // what the user typed to reach it
  std::string text;
  int first_line = 1;    // where `text` begins in it: of a data file only the neighbourhood of a problem is kept
  int first_column = 1;  // likewise, of its first line
  bool typed = false;    // on the command line, by whoever runs the program; a file may be a stranger's
};

/// A piece of one line of a source. A value type; keeps its text alive.
/// line and column count from 1; line 0 means "the file as a whole", no source means "no place known".
struct SourceSpan {
  std::shared_ptr<const SourceText> source;
  int line = 0;
  int column = 0;
  int length = 0;

  bool known() const { return source != nullptr; }
};

enum class Severity { kError, kWarning };

/// "error" or "warning".
const char* severity_name(Severity severity);

/// One thing that is wrong, in the order a person reads it: where, what, why it cannot be, what to do.
struct Problem {
  std::string kind = {};  // stable id for programs, as "column-not-written"; not shown. Empty: outside of a check
  SourceSpan where;
  std::string message;             // one line, without place and without a full stop
  std::string caret;               // written after the carets; may be empty
  std::vector<std::string> notes;  // facts, one line each
  std::string help;                // the remedy; may be empty
  Severity severity = Severity::kError;
};

using Problems = std::vector<Problem>;

bool has_errors(const Problems& problems);

/// The text of one problem: place, message, source line with carets, notes, help. Ends with a newline.
std::string render(const Problem& problem);

/// In order of place (file, line, column); of those with the same text only the first.
Problems in_order(const Problems& problems);

/// All problems, in_order(), a blank line between two. Ends with a newline unless empty.
std::string render(const Problems& problems);

}  // namespace sluice
