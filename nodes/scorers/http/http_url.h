#pragma once

#include <string>

namespace sluice::nodes {

/// Why `url` is not one of HTTP or HTTPS, without what is secret in it; empty: it is.
std::string fault_of_url(const std::string& url);

/// Its host is this machine, by a name or an address that cannot mean another.
bool is_this_machine(const std::string& url);

}  // namespace sluice::nodes
