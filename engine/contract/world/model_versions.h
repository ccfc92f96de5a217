#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::engine {

/// The versions of a model that a run which goes on needs: `newest` is that of the live weights, the older ones are those that
/// iterations under way were sampled with. They are the same where nobody samples from it.
struct VersionRange {
  int64_t oldest = 0;
  int64_t newest = 0;
};

/// The versions of a model's weights that there are beside the newest. A plain value; which they are is computed here alone.
///
/// After n iterations the live weights are version n; version 0 is what the run began with. Readable are the published
/// versions that samples may still be drawn from while training goes on. Saved are those that a checkpoint has beside the live
/// weights, because iterations under way were sampled with them.
struct ModelVersions {
  int64_t readable = 0;  // with the newest; 0: nobody samples, 1: nothing is sampled between an update and its publication
  int64_t saved = 0;     // without the newest: the policy lag of what samples from the model

  /// Once `newest` is published. Below 0 where not so many have been published yet.
  int64_t oldest_readable(int64_t newest) const { return newest - readable + 1; }

  /// Of a checkpoint whose live weights are `newest`.
  VersionRange saved_with(int64_t newest) const { return {.oldest = std::max<int64_t>(0, newest - saved), .newest = newest}; }

  /// Versions whose trained weights are kept to be saved later. One more than a checkpoint has beside the live weights: one
  /// that is taken after a publication wants those before it.
  int64_t kept_to_save() const { return saved > 0 ? saved + 1 : 0; }
};

}  // namespace sluice::engine
