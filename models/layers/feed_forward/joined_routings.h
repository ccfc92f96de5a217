#pragma once

#include <vector>

#include "models/layers/feed_forward/sample_routing.h"
#include "models/layers/segment.h"

namespace sluice::models {

/// From what the router has done with the rows of each sample in this segment to what it has done with the samples as a whole:
/// the same on all ranks of the pass. Every rank adds in the order of the segments. Of a whole pass it is what it is given.
std::vector<SampleRouting> of_all_segments(const Segment& segment, std::vector<SampleRouting> samples);

}  // namespace sluice::models
