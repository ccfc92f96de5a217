#include "engine/graph_text.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

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
std::vector<std::string> details(const PlanNode& node) {
  std::vector<std::string> lines{node.type->info.type + " on " + node.executor};
  for (const ModelNeed& need : node.needs.models) lines.push_back(std::string(name_of(need.use)) + " " + need.model);
  if (node.needs.scope == Scope::kIteration) {
    lines.push_back("barrier" + (node.needs.scope_reason.empty() ? std::string() : ": " + node.needs.scope_reason));
  }
  return lines;
}

// Column names in lines of readable width.
std::vector<std::string> label_lines(const Plan& plan, const PlanEdge& edge) {
  constexpr size_t kWidest = 30;
  std::vector<std::string> lines;
  for (const int column : edge.columns) {
    const std::string& name = plan.columns[static_cast<size_t>(column)].spec.name;
    if (lines.empty() || lines.back().size() + 2 + name.size() > kWidest)
      lines.push_back(name);
    else
      lines.back() += ", " + name;
  }
  return lines;
}

/// The way of new weights: from the node that publishes a model to the rollout that samples from it.
struct VersionLoop {
  size_t publisher;
  size_t rollout;
};

std::vector<VersionLoop> version_loops(const Plan& plan) {
  std::vector<VersionLoop> loops;
  if (!plan.rollout) return loops;
  const auto rollout = static_cast<size_t>(*plan.rollout);
  for (const ModelNeed& sampled : plan.nodes[rollout].needs.models) {
    if (sampled.use != ModelUse::kSamples) continue;
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      for (const ModelNeed& need : plan.nodes[i].needs.models) {
        if (need.use == ModelUse::kPublishes && need.model == sampled.model) loops.push_back({i, rollout});
      }
    }
  }
  return loops;
}

std::string version_label(const Plan& plan) { return "version +1, lag " + std::to_string(plan.schedule.policy_lag); }

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

std::string dot_node(const PlanNode& node) {
  const Look& look = look_of(node);
  std::string label =
      "<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\"><tr><td><b>" + html(node.name) + "</b></td></tr>";
  for (const std::string& line : details(node)) {
    label += "<tr><td><font point-size=\"10\" color=\"#5c5c58\">" + html(line) + "</font></td></tr>";
  }
  const bool barrier = node.needs.scope == Scope::kIteration;
  return "  " + dot_string(node.name) + " [label=<" + label + "</table>>, fillcolor=\"" + look.fill + "\", color=\"" + look.line +
         "\"" + (barrier ? ", peripheries=2" : "") + "];\n";
}

std::string dot_edge(const Plan& plan, const PlanEdge& edge) {
  const std::string ends = "  " + dot_string(plan.nodes[static_cast<size_t>(edge.from)].name) + " -> " +
                           dot_string(plan.nodes[static_cast<size_t>(edge.to)].name);
  const auto lines = label_lines(plan, edge);
  return ends + (lines.empty() ? ";\n" : " [label=" + dot_string(join(lines, "\n")) + "];\n");
}

std::string mermaid_node(const PlanNode& node, size_t index) {
  std::vector<std::string> lines{"<b>" + mermaid(node.name) + "</b>"};
  for (const std::string& line : details(node)) lines.push_back(mermaid(line));
  const bool barrier = node.needs.scope == Scope::kIteration;
  const std::string text = "\"" + join(lines, "<br/>") + "\"";
  return "  n" + std::to_string(index) + (barrier ? "[[" + text + "]]" : "(" + text + ")") + ":::" + look_of(node).name + "\n";
}

std::string mermaid_edge(const Plan& plan, const PlanEdge& edge) {
  std::vector<std::string> lines;
  for (const std::string& line : label_lines(plan, edge)) lines.push_back(mermaid(line));
  const std::string label = lines.empty() ? std::string() : "|\"" + join(lines, "<br/>") + "\"|";
  return "  n" + std::to_string(edge.from) + " -->" + label + " n" + std::to_string(edge.to) + "\n";
}

}  // namespace

std::string dot_text(const Plan& plan) {
  std::string text = "digraph " + dot_string(plan.pipeline.name) + " {\n";
  text += "  rankdir=TB; bgcolor=\"white\"; nodesep=0.5; ranksep=0.55;\n";
  text +=
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=13, penwidth=1.2, margin=\"0.12,0.06\"];\n";
  text += "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#8a8a84\", fontcolor=\"#5c5c58\", arrowsize=0.7];\n\n";
  for (const PlanNode& node : plan.nodes) text += dot_node(node);
  text += "\n";
  for (const PlanEdge& edge : plan.edges) text += dot_edge(plan, edge);
  for (const VersionLoop& loop : version_loops(plan)) {
    text += "  " + dot_string(plan.nodes[loop.publisher].name) + " -> " + dot_string(plan.nodes[loop.rollout].name) +
            " [style=dashed, constraint=false, color=\"" + kPublisherLook.line + "\", fontcolor=\"" + kPublisherLook.line +
            "\", label=" + dot_string(version_label(plan)) + "];\n";
  }
  return text + "}\n";
}

std::string mermaid_text(const Plan& plan) {
  std::string text = "flowchart TB\n";
  for (size_t i = 0; i < plan.nodes.size(); ++i) text += mermaid_node(plan.nodes[i], i);
  for (const PlanEdge& edge : plan.edges) text += mermaid_edge(plan, edge);
  for (const VersionLoop& loop : version_loops(plan)) {
    text +=
        "  n" + std::to_string(loop.publisher) + " -.->|\"" + version_label(plan) + "\"| n" + std::to_string(loop.rollout) + "\n";
  }
  for (const Look& look : kLooks) {
    text += std::string("  classDef ") + look.name + " fill:" + look.fill + ",stroke:" + look.line + ",color:#222\n";
  }
  return text;
}

}  // namespace sluice::engine
