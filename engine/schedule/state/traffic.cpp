#include "engine/schedule/state/traffic.h"

namespace sluice::engine {
namespace {

void add_to(std::atomic<int64_t>& total, int64_t amount) {
  total.store(total.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

// Of the columns that are alive on the edge: each still has a reader at or after its end.
int64_t bytes_on(const PlanEdge& edge, const BatchState& batch) {
  int64_t bytes = 0;
  for (const int column : edge.columns) bytes += batch.slots[static_cast<size_t>(column)].bytes;
  return bytes;
}

}  // namespace

Traffic::Traffic(const Plan& plan)
    : plan_(plan),
      edges_out_(plan.nodes.size()),
      edges_in_(plan.nodes.size()),
      edges_(plan.edges.size()),
      nodes_(plan.nodes.size()) {
  for (size_t e = 0; e < plan.edges.size(); ++e) {
    edges_out_[static_cast<size_t>(plan.edges[e].from)].push_back(e);
    edges_in_[static_cast<size_t>(plan.edges[e].to)].push_back(e);
  }
}

void Traffic::Counter::add(int64_t more_tokens, int64_t more_bytes) {
  add_to(micro_batches, 1);
  add_to(tokens, more_tokens);
  add_to(bytes, more_bytes);
}

Traffic::Amount Traffic::Counter::amount() const {
  return {micro_batches.load(std::memory_order_relaxed), tokens.load(std::memory_order_relaxed),
          bytes.load(std::memory_order_relaxed)};
}

void Traffic::arrived(int node) { add_to(nodes_[static_cast<size_t>(node)].arrived, 1); }
void Traffic::packet_done(int node) { add_to(nodes_[static_cast<size_t>(node)].finished, 1); }
void Traffic::held(int node, int64_t micro_batches) {
  nodes_[static_cast<size_t>(node)].held.store(micro_batches, std::memory_order_relaxed);
}

void Traffic::handed_on(int node, const BatchState* batch) {
  if (batch == nullptr) return;
  const auto tokens = static_cast<int64_t>(batch->layout.tokens());
  for (const size_t edge : edges_out_[static_cast<size_t>(node)])
    edges_[edge].in.add(tokens, bytes_on(plan_.edges[edge], *batch));
}

void Traffic::done(int node, const BatchState& batch) {
  const auto tokens = static_cast<int64_t>(batch.layout.tokens());
  nodes_[static_cast<size_t>(node)].done.add(tokens, 0);
  for (const size_t edge : edges_in_[static_cast<size_t>(node)]) edges_[edge].out.add(tokens, bytes_on(plan_.edges[edge], batch));
}

Traffic::Amount Traffic::on_edge(size_t edge) const {
  const Amount out = edges_[edge].out.amount(), in = edges_[edge].in.amount();
  return {in.micro_batches - out.micro_batches, in.tokens - out.tokens, in.bytes - out.bytes};
}

Traffic::Amount Traffic::through(int node) const { return nodes_[static_cast<size_t>(node)].done.amount(); }

int64_t Traffic::queued(int node) const {
  const NodeCounters& counters = nodes_[static_cast<size_t>(node)];
  const int64_t finished = counters.finished.load(std::memory_order_relaxed);
  return counters.arrived.load(std::memory_order_relaxed) - finished;
}

int64_t Traffic::packets_done() const {
  int64_t packets = 0;
  for (const NodeCounters& counters : nodes_) packets += counters.finished.load(std::memory_order_relaxed);
  return packets;
}

int64_t Traffic::held(int node) const { return nodes_[static_cast<size_t>(node)].held.load(std::memory_order_relaxed); }

}  // namespace sluice::engine
