#pragma once

#include <string>

namespace sluice::nodes {

/// A classic BPF program for seccomp(2), as the bytes of its sock_filter instructions: what code that nobody has read may ask of
/// the kernel. Everything that an ordinary program uses is allowed; refused (EPERM) are calls that reach into other processes,
/// mount, make namespaces, load code into the kernel, hold memory that no limit counts, or are known for their bugs, and sockets
/// of other kinds than unix and internet. Calls of another architecture end the process. Empty: not known for this architecture.
std::string seccomp_filter();

}  // namespace sluice::nodes
