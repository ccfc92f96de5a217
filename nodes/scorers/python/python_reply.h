#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace sluice::nodes {

/// What python_worker.py answers: scores, or why there are none.
struct PythonReply {
  std::string failure;                                  // of all samples; empty: none
  std::vector<float> scores;                            // [samples]
  std::vector<std::pair<size_t, std::string>> errors;   // of single samples
  std::vector<std::pair<std::string, double>> metrics;  // in the order of their names
};

/// Throws UserError, "wrote ...", when the line is no such answer to a request of `samples` samples: the user's function has
/// written where only its process does.
PythonReply parse_python_reply(const std::string& line, size_t samples);

/// The name of the function that a worker says it will call. Throws UserError when the line is no greeting, or says that the file
/// cannot be used.
std::string parse_python_greeting(const std::string& line);

}  // namespace sluice::nodes
