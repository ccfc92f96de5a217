#include "engine/text/graph_text.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text/strings.h"
#include "engine/memory/role_traffic.h"
#include "engine/text/ranks_text.h"

namespace sluice::engine {
namespace {

/// What a reader of the graph should see first about a node.
struct Look {
  const char* name;
  const char* fill;
  const char* line;
};

constexpr Look kSourceLook{"source", "#e8eef4", "#7a93ac"};
constexpr Look kRolloutLook{"rollout", "#e3f0e6", "#6f9f7a"};
constexpr Look kOrdinaryLook{"ordinary", "#f7f7f5", "#a3a39b"};
constexpr Look kBarrierLook{"barrier", "#f8efdc", "#bf9b4d"};
constexpr Look kTrainerLook{"trainer", "#f3e4e6", "#b07680"};
constexpr Look kPublisherLook{"publisher", "#ebe6f2", "#8d7cab"};
constexpr std::array kLooks{kSourceLook, kRolloutLook, kOrdinaryLook, kBarrierLook, kTrainerLook, kPublisherLook};

bool uses(const PlanNode& node, ModelUse use) {
  return std::any_of(node.needs.models.begin(), node.needs.models.end(), [&](const ModelNeed& need) { return need.use == use; });
}

const Look& look_of(const PlanNode& node) {
  if (node.type->kind == NodeKind::kSource) return kSourceLook;
  if (node.type->kind == NodeKind::kRollout) return kRolloutLook;
  if (uses(node, ModelUse::kUpdates)) return kTrainerLook;
  if (uses(node, ModelUse::kPublishes)) return kPublisherLook;
  return node.needs.scope == Scope::kIteration ? kBarrierLook : kOrdinaryLook;
}

// The lines below the name: type and executor, models, barrier.
std::vector<std::string> details(const Plan& plan, const PlanNode& node) {
  std::vector<std::string> lines{node.type->info.type + " on " + place_text(plan, node)};
  for (const ModelNeed& need : node.needs.models) lines.push_back(std::string(name_of(need.use)) + " " + need.model);
  if (node.needs.scope == Scope::kIteration) {
    lines.push_back("barrier" + (node.needs.scope_reason.empty() ? std::string() : ": " + node.needs.scope_reason));
  }
  return lines;
}

// A column that comes to a node on several edges stands on the one from its writer, or else on the first.
bool is_edge_of(const Plan& plan, const PlanEdge& edge, int column) {
  const auto brings = [&](const PlanEdge& other) {
    return other.to == edge.to && std::ranges::find(other.columns, column) != other.columns.end();
  };
  const int writer = plan.columns[static_cast<size_t>(column)].writer;
  const bool from_writer =
      std::ranges::any_of(plan.edges, [&](const PlanEdge& other) { return brings(other) && other.from == writer; });
  if (from_writer) return edge.from == writer;
  return std::ranges::find_if(plan.edges, brings)->from == edge.from;
}

// What the node at the end reads; everything else only passes through.
std::vector<int> columns_on(const Plan& plan, const PlanEdge& edge, GraphColumns which) {
  if (which == GraphColumns::kAll) return edge.columns;
  const std::vector<int>& reads = plan.nodes[static_cast<size_t>(edge.to)].reads;
  std::vector<int> shown;
  std::ranges::copy_if(edge.columns, std::back_inserter(shown), [&](int column) {
    return std::ranges::find(reads, column) != reads.end() && is_edge_of(plan, edge, column);
  });
  return shown;
}

// Column names in lines of readable width.
std::vector<std::string> label_lines(const Plan& plan, const PlanEdge& edge, GraphColumns which) {
  constexpr size_t kWidest = 30;
  std::vector<std::string> lines;
  for (const int column : columns_on(plan, edge, which)) {
    const std::string& name = plan.columns[static_cast<size_t>(column)].spec.name;
    if (lines.empty() || lines.back().size() + 2 + name.size() > kWidest)
      lines.push_back(name);
    else
      lines.back() += ", " + name;
  }
  return lines;
}

std::string at_most(int64_t bytes, const PlanPath& path) {
  return "up to " + human_bytes(bytes) + " an iteration" + (path.measures() ? " that measures" : "");
}

// What goes from rank to rank there. The columns of a rollout go all together: they stand on its first edge.
std::vector<std::string> bytes_lines(const Plan& plan, const RoleTraffic& traffic, const PlanEdge& edge) {
  if (!is_remote(plan, edge)) return {};
  for (const RoleTraffic::Passes& of_node : traffic.passes) {
    const PlanPath& path = plan.path_of(of_node.node);
    const auto is_first = [&](int PlanEdge::*end) {
      return edge.*end == of_node.node && &edge == &*std::ranges::find(plan.edges, of_node.node, end);
    };
    if (is_first(&PlanEdge::to)) return {at_most(of_node.asked_bytes, path)};
    if (is_first(&PlanEdge::from)) return {at_most(of_node.answer_bytes, path)};
  }
  for (const RoleTraffic::Groups& of_path : traffic.groups) {
    const PlanPath& path = plan.paths[static_cast<size_t>(of_path.path)];
    if (edge.from == path.source) return {at_most(of_path.prompt_bytes, path)};
    if (edge.from != path.rollout) continue;
    const bool is_first = &edge == &*std::ranges::find(plan.edges, edge.from, &PlanEdge::from);
    if (is_first) return {"all columns: " + at_most(of_path.column_bytes, path)};
  }
  return {};
}

/// The way of new weights: from the node that publishes a model to the rollout that samples from it.
struct VersionLoop {
  size_t publisher;
  size_t rollout;
};

std::vector<VersionLoop> version_loops(const Plan& plan) {
  std::vector<VersionLoop> loops;
  const auto add_publishers = [&](size_t rollout, const std::string& model) {
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      for (const ModelNeed& need : plan.nodes[i].needs.models) {
        if (need.use == ModelUse::kPublishes && need.model == model) loops.push_back({i, rollout});
      }
    }
  };
  for (const PlanPath& path : plan.paths) {
    if (!path.rollout) continue;
    const auto rollout = static_cast<size_t>(*path.rollout);
    for (const ModelNeed& sampled : plan.nodes[rollout].needs.models) {
      if (sampled.use == ModelUse::kSamples) add_publishers(rollout, sampled.model);
    }
  }
  return loops;
}

// Of a path that measures: when.
std::string version_label(const Plan& plan, const VersionLoop& loop) {
  const PlanPath& path = plan.path_of(static_cast<int>(loop.rollout));
  if (!path.measures()) return "version +1, lag " + std::to_string(path.policy_lag);
  if (!path.settings.every_iterations) return "the last version";
  return *path.settings.every_iterations == 1 ? "every version"
                                              : "every " + std::to_string(*path.settings.every_iterations) + " versions";
}

// Versions go to each rank once, whatever samples there: their bytes stand on the first way.
std::vector<std::string> loop_lines(const Plan& plan, const RoleTraffic& traffic, const std::vector<VersionLoop>& loops,
                                    const VersionLoop& loop) {
  std::vector<std::string> lines{version_label(plan, loop)};
  const auto receivers = static_cast<int64_t>(plan.receivers().size());
  const bool is_first = &loop == &*std::ranges::find(loops, loop.publisher, &VersionLoop::publisher);
  for (const RoleTraffic::Version& version : traffic.versions) {
    const auto& needs = plan.nodes[loop.publisher].needs.models;
    if (is_first && std::ranges::find(needs, version.model, &ModelNeed::model) != needs.end())
      lines.push_back(human_bytes(version.bytes) + (receivers == 1 ? " to " : " to each of ") + plural(receivers, "rank"));
  }
  return lines;
}

// The nodes of a role; a source whose groups a rollout makes is on every rank, and so of none.
bool is_of_role(const Plan& plan, const PlanRole& role, size_t node) {
  return (!plan.has_roles() || !plan.is_inside_rollout(static_cast<int>(node))) && role.has_executor(plan.nodes[node].executor);
}

bool is_of_no_role(const Plan& plan, size_t node) {
  return std::ranges::none_of(plan.all_roles(), [&](const PlanRole* role) { return is_of_role(plan, *role, node); });
}

std::string role_label(const PlanRole& role) { return role.name + ": " + plural(role.ranks, "rank"); }

std::string replaced(const std::string& text, const std::vector<std::pair<char, std::string>>& escapes) {
  std::string out;
  for (const char c : text) {
    const auto escape = std::find_if(escapes.begin(), escapes.end(), [c](const auto& e) { return e.first == c; });
    if (escape == escapes.end())
      out += c;
    else
      out += escape->second;
  }
  return out;
}

std::string html(const std::string& text) {
  return replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}
std::string dot_string(const std::string& text) {
  return "\"" + replaced(text, {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}}) + "\"";
}
std::string mermaid(const std::string& text) {
  return replaced(text, {{'&', "#amp;"}, {'<', "#lt;"}, {'>', "#gt;"}, {'"', "#quot;"}, {'#', "#35;"}, {'\n', " "}});
}

std::string dot_node(const Plan& plan, const PlanNode& node) {
  const Look& look = look_of(node);
  std::string label =
      "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\"><tr><td><b>" + html(node.name) + "</b></td></tr>";
  for (const std::string& line : details(plan, node)) {
    label += "<tr><td><font point-size=\"10\" color=\"#5c5c58\">" + html(line) + "</font></td></tr>";
  }
  const bool barrier = node.needs.scope == Scope::kIteration;
  return "  " + dot_string(node.name) + " [label=<" + label + "</table>>, fillcolor=\"" + look.fill + "\", color=\"" + look.line +
         "\"" + (barrier ? ", peripheries=2" : "") + "];\n";
}

// Graphviz puts a label right beside its edge and would let them touch: a table has room around it.
std::string dot_label(const std::vector<std::string>& lines) {
  std::vector<std::string> escaped;
  for (const std::string& line : lines) escaped.push_back(html(line));
  return "label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"7\"><tr><td align=\"left\" "
         "balign=\"left\">" +
         join(escaped, "<br/>") + "</td></tr></table>>";
}

std::string dot_edge(const Plan& plan, const RoleTraffic& traffic, const PlanEdge& edge, GraphColumns which) {
  const std::string ends = "  " + dot_string(plan.nodes[static_cast<size_t>(edge.from)].name) + " -> " +
                           dot_string(plan.nodes[static_cast<size_t>(edge.to)].name);
  std::vector<std::string> lines = label_lines(plan, edge, which);
  std::ranges::copy(bytes_lines(plan, traffic, edge), std::back_inserter(lines));
  std::vector<std::string> attributes;
  if (is_remote(plan, edge)) attributes.emplace_back("penwidth=2.4");
  if (!lines.empty()) attributes.push_back(dot_label(lines));
  return ends + (attributes.empty() ? ";\n" : " [" + join(attributes, ", ") + "];\n");
}

std::string dot_cluster(const Plan& plan, const PlanRole& role) {
  std::string text = "  subgraph " + dot_string("cluster_" + role.name) + " {\n";
  text += "  label=" + dot_string(role_label(role)) +
          "; labeljust=\"l\"; fontname=\"Helvetica\"; fontsize=12; style=\"rounded\"; color=\"#c4c4be\"; margin=14;\n";
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (is_of_role(plan, role, i)) text += dot_node(plan, plan.nodes[i]);
  }
  return text + "  }\n";
}

std::string mermaid_node(const Plan& plan, size_t index) {
  const PlanNode& node = plan.nodes[index];
  std::vector<std::string> lines{"<b>" + mermaid(node.name) + "</b>"};
  for (const std::string& line : details(plan, node)) lines.push_back(mermaid(line));
  const bool barrier = node.needs.scope == Scope::kIteration;
  const std::string text = "\"" + join(lines, "<br/>") + "\"";
  return "  n" + std::to_string(index) + (barrier ? "[[" + text + "]]" : "(" + text + ")") + ":::" + look_of(node).name + "\n";
}

std::string mermaid_edge(const Plan& plan, const RoleTraffic& traffic, const PlanEdge& edge, GraphColumns which) {
  std::vector<std::string> lines;
  for (const std::string& line : label_lines(plan, edge, which)) lines.push_back(mermaid(line));
  for (const std::string& line : bytes_lines(plan, traffic, edge)) lines.push_back(mermaid(line));
  const std::string label = lines.empty() ? std::string() : "|\"" + join(lines, "<br/>") + "\"|";
  const char* arrow = is_remote(plan, edge) ? " ==>" : " -->";
  return "  n" + std::to_string(edge.from) + arrow + label + " n" + std::to_string(edge.to) + "\n";
}

std::string mermaid_subgraph(const Plan& plan, const PlanRole& role, size_t number) {
  std::string text = "  subgraph r" + std::to_string(number) + "[\"" + mermaid(role_label(role)) + "\"]\n";
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (is_of_role(plan, role, i)) text += mermaid_node(plan, i);
  }
  return text + "  end\n";
}

}  // namespace

std::string dot_text(const Plan& plan, GraphColumns columns) {
  std::string text = "digraph " + dot_string(plan.pipeline.name) + " {\n";
  text += "  rankdir=TB; bgcolor=\"white\"; nodesep=0.5; ranksep=0.55;\n";
  text +=
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=13, penwidth=1.2, margin=\"0.12,0.06\"];\n";
  text += "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#8a8a84\", fontcolor=\"#5c5c58\", arrowsize=0.7];\n\n";
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (is_of_no_role(plan, i)) text += dot_node(plan, plan.nodes[i]);
  }
  for (const PlanRole* const role : plan.all_roles()) text += dot_cluster(plan, *role);
  text += "\n";
  const RoleTraffic traffic = role_traffic(plan);
  for (const PlanEdge& edge : plan.edges) text += dot_edge(plan, traffic, edge, columns);
  const std::vector<VersionLoop> loops = version_loops(plan);
  for (const VersionLoop& loop : loops) {
    text += "  " + dot_string(plan.nodes[loop.publisher].name) + " -> " + dot_string(plan.nodes[loop.rollout].name) +
            " [style=dashed, constraint=false, " + (plan.has_roles() ? "penwidth=2.4, " : "") + "color=\"" + kPublisherLook.line +
            "\", fontcolor=\"" + kPublisherLook.line + "\", " + dot_label(loop_lines(plan, traffic, loops, loop)) + "];\n";
  }
  return text + "}\n";
}

std::string mermaid_text(const Plan& plan, GraphColumns columns) {
  std::string text = "flowchart TB\n";
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (is_of_no_role(plan, i)) text += mermaid_node(plan, i);
  }
  size_t number = 0;
  for (const PlanRole* const role : plan.all_roles()) text += mermaid_subgraph(plan, *role, number++);
  const RoleTraffic traffic = role_traffic(plan);
  for (const PlanEdge& edge : plan.edges) text += mermaid_edge(plan, traffic, edge, columns);
  const std::vector<VersionLoop> loops = version_loops(plan);
  for (const VersionLoop& loop : loops) {
    text += "  n" + std::to_string(loop.publisher) + " -.->|\"" + join(loop_lines(plan, traffic, loops, loop), "<br/>") +
            "\"| n" + std::to_string(loop.rollout) + "\n";
  }
  for (const Look& look : kLooks) {
    text += std::string("  classDef ") + look.name + " fill:" + look.fill + ",stroke:" + look.line + ",color:#222\n";
  }
  return text;
}

}  // namespace sluice::engine
