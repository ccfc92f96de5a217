#pragma once

#include <cstdint>
#include <vector>

#include "engine/contract/publication.h"

namespace sluice::comm {

/// A piece of a version, which goes from its owner to all receivers. A plain value.
struct PublishedPiece {
  int64_t bucket = 0;
  int64_t number = 0;  // in its bucket
  int owner = 0;
  size_t turn = 0;  // which hosts and receivers hand it on
  engine::Range range;
  engine::Range owned;  // of the owner, which it is cut from
};

/// Who sends what to whom, worked out alike on each rank.
///
/// Each range of an owner is cut into pieces. Receivers on the host of the owner get all of them from the owner, as they copy by
/// themselves. To the other hosts a piece goes in a ring: the first one gets it from the owner, and each hands it on to the next
/// and to its other receivers. Which host begins, and which receiver hands on, changes from piece to piece. So an owner sends each
/// byte over its network once, a host sends and gets each byte once at most, and time does not grow with their number but for the
/// way of one piece. An owner that receives too never gets what it owns.
///
/// A ring, and no receiver that sends a piece to all others: where many send to one, some get less of its bandwidth than others
/// for a while, and a receiver that is behind by some bytes at the end had to send these to all others one by one.
///
/// Source: the scatter and ring all-gather of a long broadcast, Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective
/// Communication Operations in MPICH", sections 4.1 and 4.2.
class PublicationPlan {
 public:
  /// Without hosts in the layout each rank has one of its own. `direct`: receivers may be lost, so nobody hands anything on, and each
  /// gets all from the owners, wherever it is: another process may take its place elsewhere. Throws InternalError for a layout that is none.
  explicit PublicationPlan(engine::PublicationLayout layout, bool direct = false);

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
  using Receivers = std::vector<int>;

  std::vector<int> others_than(int rank) const;  // receivers
  void cut(int64_t bucket, const engine::OwnedBytes& owned, int64_t& number);
  int host_of(int rank) const;
  const Receivers* host_with(int rank) const;
  int first_on(const Receivers& host, const PublishedPiece& piece) const;
  const Receivers* first_host(const PublishedPiece& piece) const;
  const Receivers* next_host(const PublishedPiece& piece, const Receivers* host) const;

  const engine::PublicationLayout layout_;
  const bool direct_;
  std::vector<Receivers> hosts_;  // those that have receivers
  std::vector<PublishedPiece> pieces_;
  std::vector<int> owners_, ranks_;
};

}  // namespace sluice::comm
