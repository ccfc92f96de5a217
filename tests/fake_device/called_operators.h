#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace sluice::fake {

/// Appends the name of each operator that the devices are asked for to this file, a line each, once a process. Several processes
/// may write to one file. Throws std::runtime_error when it cannot be opened. Before the first operator.
void write_called_operators(const std::string& path);

/// Thread-safe. Does nothing where no file was named.
void note_called(const c10::OperatorHandle& op);

}  // namespace sluice::fake
