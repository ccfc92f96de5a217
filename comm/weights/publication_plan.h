#pragma once

#include <cstdint>
#include <vector>

#include "engine/ranks/publication.h"

namespace sluice::comm {

/// A piece of a version: it goes from its owner to one receiver, which hands it on to the others. A plain value.
struct PublishedPiece {
  int64_t bucket = 0;
  int64_t number = 0;  // in its bucket
  int owner = 0;
  int first = 0;  // the receiver; the owner, where no other rank receives
  engine::Range range;
  engine::Range owned;  // of the owner, which it is cut from
};

/// Who sends what to whom, worked out alike on each rank.
///
/// Each range of an owner is cut into a piece for every receiver but itself, or several where it is large. A receiver gets its piece
/// from the owner and hands it on, so that an owner sends each byte once, and what a receiver sends and gets is about one version,
/// however many there are. An owner that receives too never gets what it owns.
///
/// Source: the scatter and all-gather of a long broadcast, Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective
/// Communication Operations in MPICH", section 4.2.
class PublicationPlan {
 public:
  /// Throws InternalError for a layout that is none.
  explicit PublicationPlan(engine::PublicationLayout layout);

  const engine::PublicationLayout& layout() const { return layout_; }
  const std::vector<PublishedPiece>& pieces() const { return pieces_; }  // by range
  const std::vector<int>& owners() const { return owners_; }             // in order, once each
  const std::vector<int>& ranks() const { return ranks_; }               // owners and receivers, likewise

  bool is_owner(int rank) const;
  bool is_receiver(int rank) const;

  /// Receivers that get the piece from this rank.
  std::vector<int> targets(const PublishedPiece& piece, int rank) const;

  /// Who this receiver gets the piece from; itself: it owns it.
  int source(const PublishedPiece& piece, int receiver) const;

 private:
  void cut(int64_t bucket, const engine::OwnedBytes& owned, int64_t& number);
  std::vector<int> firsts_of(int owner) const;

  const engine::PublicationLayout layout_;
  std::vector<PublishedPiece> pieces_;
  std::vector<int> owners_, ranks_;
};

}  // namespace sluice::comm
