#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::engine {

/// What of a node matters to the proof.
struct CapacityNode {
  std::vector<int> inputs;  // indices into CapacityShape::nodes, all smaller than its own
  bool reads = false;       // an ordinary node that reads columns: tokens stay in flight until it is done with them
  bool barrier = false;     // keeps all micro-batches of an iteration until the iteration ends
};

/// A pipeline as the proof sees it, on one rank: its groups, its slots, its budget. Sizes are in tokens; least <= worst; a
/// micro-batch holds a group.
struct CapacityShape {
  int64_t worst_group = 1;
  int64_t least_group = 1;  // once it is finished
  int64_t groups = 1;       // of an iteration, in the slots of the rank that has most
  int64_t micro_batch = 1;
  int64_t slots = 1;            // of a rank; groups of one are not packed with those of another
  int64_t open_iterations = 1;  // most iterations of which tokens can be in flight at once
  std::vector<CapacityNode> nodes;
  std::optional<int> refill;  // the filter that has dropped groups replaced
  int64_t most_draws = 1;     // with refill: at most most_draws x groups are drawn in an iteration
  double oversample = 1;      // with refill: so many times the missing groups are drawn in a round
};

/// What follows from it, in tokens.
struct CapacityProof {
  int64_t drawn_groups = 0;           // the most groups drawn in an iteration
  int64_t iteration_tokens = 0;       // all of them
  int64_t micro_batch_tokens = 0;     // the largest micro-batch that can come about
  int64_t most_in_flight = 0;         // what no budget can be used beyond
  int64_t packer_needs = 0;           // the smallest budget with which micro-batches come about
  int64_t tokens_needed = 0;          // the smallest budget with which no run stalls, whatever the sizes and the timing are
  std::optional<int> needed_by;       // the barrier that needs it; absent: the packer
  std::vector<bool> holds;            // by node: it, or one after it, reads columns; tokens of what it has not done are in flight
  std::vector<int64_t> worst_tokens;  // by node: the most that it can hold at once, whatever the budget is
};

/// The proof. `tokens_needed` is exact: with one token less some order of events stalls. It is an upper bound for a rank of
/// several slots, since micro-batches are cut between them, and for more than 2^20 groups an iteration after a refilling filter.
///
/// Why it is right: groups are admitted in order and an iteration begins when the last one is packed, so all of earlier
/// iterations drains without help. A run stalls if and only if the next group of an iteration does not fit beside what cannot
/// drain before it comes: what lies in the open micro-batch, and what barriers hold. So the budget needed is the largest
/// reachable sum of the three.
///
/// The same budget is needed with credit on demand, where a group is admitted with less and grows, and groups are handed on in
/// order. It is enough: take the oldest group that is not handed on. All older ones are packed; all younger ones can be preempted
/// down to no credit at all, finished samples among them (SampleCredit does so). So what keeps the oldest from growing is again
/// the open micro-batch and what barriers hold, and with these its worst size is within the budget by the sentence above. It
/// grows to its end, is handed on, and the next one is the oldest. A group that was not admitted yet asks for less than that. And
/// it is necessary: the groups of the stall that one token less allows may come one after the other, each grown to the size it
/// has there.
///
/// Several paths: each has its own share of the budget and is proven alone. They share no tokens, so no path keeps
/// another's groups out. A path leads if it takes part in every iteration and still has data. Paths wait for each other at
/// these gates only; `lag` is policy_lag, `readable` are the versions that stay readable:
///   1. A path that samples begins iteration i once version i - lag is published: after the publisher's iteration
///      i - lag - 1. A path that measures needs version i + 1 instead, or version 0 before training.
///   2. A path begins iteration i once every path has ended iteration i - lag - 2.
///   3. A path that does not lead begins iteration i after one that leads.
///   4. A publisher ends iteration i, when it publishes, once every other path that samples its model has handed on
///      iteration i + 1 + lag - readable. That is i at the latest, since readable > lag. Of a path that measures it is i - 1 at the
///      latest, since readable >= 2. Micro-batches of iteration i it takes once it might have ended iteration i - 1.
/// There is no circle. Sort all work by iteration, and within an iteration so: first paths that lead begin; then paths whose
/// data have ended begin; then all but the ends of publishers and what waits for them is done; then publishers end; last,
/// paths that measure do all of theirs. Every gate waits for work that comes earlier in this order, and so do nodes
/// that wait for the weights of the iteration before. Now take the first work that is not done. Its gates are open, and all
/// earlier iterations of its path drain. So the path's own proof holds: it has the tokens. Shares that suffice alone
/// therefore suffice together. Each is necessary too: no other path frees tokens, so what stalls a path alone stalls it
/// beside others.
///
/// Several ranks: each has a budget of its own and is proven alone, with the groups of its slots. They wait for each other where
/// numbers are added over all of them, and nowhere else; each of these points waits for all ranks to come to the same one:
///   5. A step or the end of a barrier, and the end of any other node that adds up numbers or gradients: in iteration i.
///   6. The verdicts of a refilling filter on round r of iteration i: before round r + 1 and before the end of iteration i.
///   7. The metrics of iteration i: before an iteration counts as ended, for gate 2.
/// There is still no circle: all ranks have the same graph, so sort by the order above and, within it, by round, then by the
/// order of the graph. A point comes at one place of that order on all ranks. Take the first work that is not done on any rank:
/// what a point of it waits for on other ranks comes earlier, and is done. So a rank waits for others only while they can get on;
/// nothing that waits at a point keeps the tokens of another rank. A rank that has fewer groups needs no more than one with more.
///
/// Ranks that share the making: on several ranks a path that does not measure, and whose rollout takes the worst credit at once,
/// has two budgets a rank. The making has room for one worst group at least; the other one is the share that is proven above. The
/// groups of a rank are admitted in order, with worst credit of the making, and a finished one keeps its size of it. They are
/// taken over in order: a group takes its size of the share and gives the credit of the making back. A rank may also make the
/// next group of another rank, with making credit of its own, while both are in the same round of the same iteration. It has the
/// credit back when the owner takes the group over. It begins no other iteration before the group is finished, but may before it
/// is taken over.
///
/// The same share is enough:
///   a. What is taken over comes in order, and no group is larger than the worst. So the proof above holds of it: while a group waits
///      for the share, all that can drain does, and then it fits.
///   b. A group that is admitted is finished some time, whoever makes it. All older ones of its owner were admitted before it. So it
///      is taken over, by a. That waits for no making credit, and for other ranks only at points of earlier rounds and iterations.
///   c. Making credit is held by admitted groups only, of rounds to which the rank has come. By b all of it comes back, and nobody
///      has to wait for that until the rank has admitted more.
/// So a rank has room for its next group some time, and makes it by itself: nobody has to help. There is no circle: in the order
/// above the groups of a round are taken over before all points of the round, and making waits only for what is taken over in the
/// same round or in earlier ones. That is why nobody helps in a round that it has not come to: it would lack the credit on its
/// way there, and the owner may wait for it in a round between. Nothing else about helping matters here: the owner may have room
/// for the group itself, and the helper may have groups of its own left in the round.
///
/// The share is necessary as before: the groups of the stall that one token less allows are made one after the other, with the
/// sizes that they have there. The last one is finished, and is never taken over.
///
/// Roles: ranks that train have the share and no making; ranks that sample have the making and no groups of their own. That is
/// the above, but for who has to make a group: a rank that samples asks each rank that trains for its next group, one after the
/// other, until that one has none left in the round, and comes to no other round before. Each rank that trains is asked by one at
/// least. A question may wait for a rank that has not come to the round yet. It comes there, since what it waits for comes
/// earlier in the order above. So every group is given away some time, and a and b hold of it. By c the making credit comes back
/// in every round, and room for one worst group of each path is enough. It is necessary, since credit is asked for with the
/// question.
///
/// Where a rank that samples is lost, what it was given and its owner has not taken over is given away again, to one that is
/// left. The owner takes no later group over before, so what others have made may keep its credit until then. That is why a rank
/// keeps room for a worst group beside all that it asks for, and has two on each path. In the room it makes only a group that was
/// given before, and that its owner takes over next, of the earliest iteration that not all owners have taken over. It may have
/// to go back to that: what it has begun of another one it finishes, since that has its credit. By a the owner takes the group
/// over some time, for nothing older is missing there. That waits for other ranks at points of earlier iterations only, and of
/// these nothing is missing. So the room comes back. Of the oldest group that an owner lacks either a rank that is left has the
/// credit, and finishes it, or it is made so.
CapacityProof prove(const CapacityShape& shape);

/// Groups that a filter with refill has drawn at once: `missing` is what it still wants, `left` what it may still draw.
int64_t groups_of_round(int64_t missing, double oversample, int64_t left);

}  // namespace sluice::engine
