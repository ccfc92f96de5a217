#pragma once

namespace sluice::text {

/// What the `tokenizers` package makes of the decimal digits of `value` in a file: its JSON reader (serde_json without
/// "float_roundtrip") divides the digits by a power of ten, and so is one bit off now and then. Sums of scores can only tie
/// where they do there when each score is the same. `value` is finite, and its shortest spelling is the one in the file.
double as_reference_reads(double value);

}  // namespace sluice::text
