#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// What Slurm writes into the environment of a job, in its own short form. Values; what is not written so is nothing.

/// The first host of a list: "node003" of "node[003-007,12]", "a1" of "a1,b[2,4]", "r1n01" of "r[1-2]n[01-16]".
std::optional<std::string> first_host(std::string_view hosts);

/// How many tasks a node has, counted from 0: of "2(x3),1" nodes 0 to 2 have two, node 3 has one.
std::optional<int> tasks_of_node(std::string_view tasks_per_node, int node);

}  // namespace sluice
