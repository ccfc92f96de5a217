#pragma once

#include "base/numbers/bytes.h"
#include "engine/contract/world/world.h"

namespace sluice::engine {

/// A contribution as bytes for another rank, exactly: sums stay without rounding, NaN and infinities are kept. Most parts take
/// some 30 bytes beside their name.
void write_contribution(ByteWriter& bytes, const Contribution& contribution);

/// Throws InternalError on what write_contribution() does not write.
Contribution read_contribution(ByteReader& bytes);

}  // namespace sluice::engine
