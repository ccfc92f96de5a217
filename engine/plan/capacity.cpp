#include "engine/plan/capacity.h"

#include <algorithm>
#include <cmath>

#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace {

constexpr int64_t kMostRoundsTried = int64_t{1} << 20;

/// The packer's side: a micro-batch is cut as soon as another group of the worst size might not fit, so an open one has at most
/// `slack` tokens.
struct Packing {
  int64_t worst;
  int64_t least;
  int64_t slack;      // micro_batch - worst
  int64_t per_batch;  // groups of the worst size that fill a micro-batch

  explicit Packing(const CapacityShape& shape)
      : worst(shape.worst_group),
        least(shape.least_group),
        slack(std::max<int64_t>(0, shape.micro_batch - shape.worst_group)),
        per_batch(slack / worst + 1) {}

  // The most tokens that up to `groups` groups leave in an open micro-batch.
  int64_t open(int64_t groups) const { return std::min(saturating_product(std::min(groups, slack / least), worst), slack); }
};

int64_t first_round(const CapacityShape& shape, int64_t groups) {
  return shape.refill ? groups_of_round(groups, shape.oversample, saturating_product(groups, shape.most_draws)) : groups;
}

// Of the slot that has most.
int64_t groups_of_slot(const CapacityShape& shape) { return divided_up(shape.groups, shape.slots); }

// The most tokens that are held by a barrier after the refilling filter or lie in the open micro-batch, after at most `groups`
// groups of a round in which the filter still wants `missing`. With no more groups than are wanted that is all of them. With
// more, the first `missing` are held and others are open; but a micro-batch must be full to be judged, so that either the last
// held group has company that is dropped, or it stays in the open one.
int64_t most_of_round(const Packing& packing, int64_t missing, int64_t groups) {
  if (groups <= missing) return saturating_product(groups, packing.worst);
  const int64_t per_batch = packing.per_batch;
  const int64_t full_batches = missing / per_batch, rest = missing % per_batch;
  const int64_t judged = rest == 0 ? missing : missing - rest + per_batch;
  int64_t most = 0;
  if (groups >= judged) most = saturating_sum(saturating_product(missing, packing.worst), packing.open(groups - judged));
  const int64_t in_full = full_batches * per_batch, others = groups - in_full;
  // A full micro-batch can be filled up to its last token by one group more, where there are groups to spare.
  const bool fills_up = per_batch <= packing.slack / packing.least;
  const int64_t spare = fills_up ? std::min({full_batches, rest, std::max<int64_t>(0, others - per_batch)}) : 0;
  const int64_t gain = packing.slack - (per_batch - 1) * packing.worst;
  return std::max(most, saturating_sum(saturating_product(in_full, packing.worst) + spare * gain, packing.open(others)));
}

// The smallest budget of a barrier after the refilling filter: it holds the groups that were kept while others are drawn. Of the
// rounds after the first the second has most left to draw, whatever was kept by then.
int64_t needed_behind_refill(const CapacityShape& shape, int64_t drawn) {
  const Packing packing(shape);
  const int64_t first = first_round(shape, shape.groups);
  if (shape.groups > kMostRoundsTried || shape.slots > 1) {  // rounds of each slot, which are not alike
    const int64_t held = saturating_product(std::min(shape.groups, drawn), shape.worst_group);
    const int64_t others = packing.open(first_round(shape, groups_of_slot(shape))) + packing.worst;
    return std::min(saturating_product(drawn, shape.worst_group), saturating_sum(held, others));
  }
  int64_t needed = 0;
  for (int64_t kept = 0; kept < shape.groups; ++kept) {
    const int64_t missing = shape.groups - kept;
    const int64_t round = kept == 0 ? first : groups_of_round(missing, shape.oversample, drawn - first);
    if (round < 1) break;
    const int64_t others = saturating_sum(most_of_round(packing, missing, round - 1), packing.worst);
    needed = std::max(needed, saturating_sum(saturating_product(kept, packing.worst), others));
  }
  return needed;
}

std::vector<bool> nodes_that_hold(const std::vector<CapacityNode>& nodes) {
  std::vector<bool> holds(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    holds[i] = holds[i] || nodes[i].reads;
    for (const int input : nodes[i].inputs) holds[static_cast<size_t>(input)] = holds[static_cast<size_t>(input)] || holds[i];
  }
  return holds;
}

std::vector<bool> nodes_behind(const std::vector<CapacityNode>& nodes, std::optional<int> filter) {
  std::vector<bool> behind(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto passes_on = [&](int input) { return input == filter || behind[static_cast<size_t>(input)]; };
    behind[i] = std::any_of(nodes[i].inputs.begin(), nodes[i].inputs.end(), passes_on);
  }
  return behind;
}

}  // namespace

int64_t groups_of_round(int64_t missing, double oversample, int64_t left) {
  constexpr double kRounding = 1e-12;  // 10 groups times 1.1 are 11, though 1.1 is not a binary number
  const double wanted = std::ceil(static_cast<double>(missing) * oversample * (1 - kRounding));
  if (wanted >= static_cast<double>(left)) return left;
  return std::min(left, std::max(missing, static_cast<int64_t>(wanted)));
}

CapacityProof prove(const CapacityShape& shape) {
  CapacityProof proof;
  proof.drawn_groups = shape.refill ? saturating_product(shape.groups, shape.most_draws) : shape.groups;
  proof.iteration_tokens = saturating_product(proof.drawn_groups, shape.worst_group);
  proof.most_in_flight = saturating_product(shape.open_iterations, proof.iteration_tokens);
  // The largest micro-batch has the most that can lie open, and one group more: what the packer must get to hand it on. A slot's
  // last micro-batch is handed on when the first group of the next slot has come.
  const Packing packing(shape);
  const int64_t of_slot = first_round(shape, groups_of_slot(shape));
  const bool another_slot_follows = shape.groups > groups_of_slot(shape);
  proof.micro_batch_tokens = packing.open(of_slot - 1) + packing.worst;
  proof.packer_needs = another_slot_follows ? packing.open(of_slot) + packing.worst : proof.micro_batch_tokens;
  proof.tokens_needed = proof.packer_needs;
  proof.holds = nodes_that_hold(shape.nodes);

  const std::vector<bool> behind = nodes_behind(shape.nodes, shape.refill);
  const int64_t kept_tokens = saturating_product(shape.groups, shape.worst_group);
  for (size_t i = 0; i < shape.nodes.size(); ++i) {
    const CapacityNode& node = shape.nodes[i];
    const int64_t of_iteration = behind[i] ? kept_tokens : proof.iteration_tokens;
    if (node.inputs.size() > 1) {
      proof.worst_tokens.push_back(saturating_product(shape.open_iterations, of_iteration));  // one input is ahead of the others
    } else {
      proof.worst_tokens.push_back(node.barrier ? of_iteration : proof.micro_batch_tokens);
    }
    if (!node.barrier || !proof.holds[i]) continue;
    const int64_t needed = behind[i] ? needed_behind_refill(shape, proof.drawn_groups) : proof.iteration_tokens;
    if (proof.needed_by && needed <= proof.tokens_needed) continue;
    proof.tokens_needed = needed;
    proof.needed_by = static_cast<int>(i);
  }
  return proof;
}

}  // namespace sluice::engine
