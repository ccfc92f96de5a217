#pragma once

#include <string_view>

namespace sluice::nodes::embedded {

// Python sources of this folder, which the build writes into the library so that they are there wherever it is installed
// (sluice_embed in cmake/Modules.cmake).
extern const std::string_view kPythonWorker;  // python_worker.py
extern const std::string_view kCodeRunner;    // code_runner.py
extern const std::string_view kCodeServer;    // code_server.py
extern const std::string_view kCodeValues;    // code_values.py
extern const std::string_view kCodeJudge;     // code_judge.py

}  // namespace sluice::nodes::embedded
