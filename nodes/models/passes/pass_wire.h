#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "engine/contract/world/pass_group.h"
#include "nodes/models/passes/pass_command.h"

namespace sluice::nodes {

// How a pass goes to another rank and its outputs come back: a command in front, and the columns that it announces after it.
// Places are of the group; threads, waiting and failure are as engine/contract/world/pass_group.h has them.

/// `part`: what that place computes. `command`: of the kind kCompute, whose sizes are filled in here.
void send_request(engine::PassGroup& group, int to, PassCommand command, const PassRequest& part);

/// What came after a command.
PassRequest receive_request(engine::PassGroup& group, int from, const PassCommand& command);

void send_outputs(engine::PassGroup& group, int to, const std::vector<at::Tensor>& outputs);

/// [count] float32 each, so many as the request has.
std::vector<at::Tensor> receive_outputs(engine::PassGroup& group, int from, const PassRequest& request, int64_t count);

}  // namespace sluice::nodes
