#include "base/text/slurm_text.h"

#include <charconv>

#include "base/text/strings.h"

namespace sluice {
namespace {

// The digits at the beginning of `text`, which loses them.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

struct EqualNodes {
  int tasks = 0;  // of each
  int nodes = 1;
};

// "2" or "2(x3)".
std::optional<EqualNodes> equal_nodes(std::string_view text) {
  EqualNodes found;
  const auto tasks = take_number(text);
  if (!tasks) return std::nullopt;
  found.tasks = *tasks;
  if (text.empty()) return found;
  if (!take(text, "(x")) return std::nullopt;
  const auto nodes = take_number(text);
  if (!nodes || text != ")") return std::nullopt;
  found.nodes = *nodes;
  return found;
}

}  // namespace

std::optional<std::string> first_host(std::string_view hosts) {
  std::string host;
  while (!hosts.empty() && hosts.front() != ',') {
    if (!take(hosts, "[")) {
      host += hosts.front();
      hosts.remove_prefix(1);
      continue;
    }
    const size_t end = hosts.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view first = hosts.substr(0, hosts.find_first_of(",-]"));
    if (first.empty()) return std::nullopt;
    host += first;
    hosts.remove_prefix(end + 1);
  }
  return host.empty() || host.find(']') != std::string::npos ? std::nullopt : std::optional(host);
}

std::optional<int> tasks_of_node(std::string_view tasks_per_node, int node) {
  for (const std::string& part : split(tasks_per_node, ',')) {
    const auto equal = equal_nodes(part);
    if (!equal) return std::nullopt;
    if (node < equal->nodes) return equal->tasks;
    node -= equal->nodes;
  }
  return std::nullopt;
}

}  // namespace sluice
