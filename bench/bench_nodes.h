#pragma once

#include <cstdint>

#include "engine/contract/registry.h"

namespace sluice::bench {

/// Node types without a model and with next to no work of their own, so that what is measured is the engine:
///
///   bench_numbers   source: groups of one number each. samples_per_group = 0 leaves the samples to a rollout
///   bench_draw      rollout: one token a step for each running sample, of hashed lengths up to worst_sample_tokens;
///                   writes drawn (token)
///   bench_touch     reads number, writes nothing
///   bench_derive    reads a token column, writes another, and sleeps for sleep_us
///   bench_sleep     reads number and sleeps: sleep_us, or up to random_us as slept_us() says
void register_bench_nodes(engine::Registry& registry);

/// How long the `stage`-th bench_sleep of random durations sleeps for a group.
double slept_us(int64_t stage, int64_t group, int64_t random_us);

/// Sleeps until a deadline that is set when it is called.
void sleep_for_us(double us);

/// Lets the calling thread's sleeps end when they should: Linux rounds them up to 50 us otherwise.
void sleep_precisely();

}  // namespace sluice::bench
