#pragma once

#include <cstdint>
#include <vector>

#include "engine/contract/world/publication.h"

namespace sluice::comm {

/// A piece of a version, which goes from its owner to the landings of all receivers. A plain value.
struct PublishedPiece {
  int64_t bucket = 0;
  int64_t number = 0;  // in its bucket
  int owner = 0;
  size_t turn = 0;  // which hosts and receivers hand it on
  engine::Range range;
  engine::Range owned;     // of the owner, which it is cut from
  size_t first_chunk = 0;  // of its chunks, in the version
};

/// Who sends what to whom, worked out alike on each rank.
///
/// Each range of an owner is cut into pieces. Receivers of one host have their landing in common, so a piece comes to each host
/// once, to one of its receivers. On the host of the owner that one copies it from the owner. To the other hosts a piece goes in
/// a ring: the first one gets it from the owner, and each hands it on to the next. Which host begins, and which of its receivers
/// brings a piece in, changes from piece to piece. So an owner sends each byte over its network once, a host sends and gets each
/// byte once at most, its receivers share the work, and time does not grow with the number of ranks but for the way of one piece.
/// An owner that receives too brings in what it owns.
///
/// A ring, and no receiver that sends a piece to all others: where many send to one, some get less of its bandwidth than others
/// for a while, and a receiver that is behind by some bytes at the end had to send these to all others one by one.
///
/// Source: the scatter and ring all-gather of a long broadcast, Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective
/// Communication Operations in MPICH", sections 4.1 and 4.2.
class PublicationPlan {
 public:
  /// Without hosts in the layout each rank has one of its own. `direct`: receivers may be lost, so nobody hands anything on, and
  /// each gets all from the owners to a landing of its own, wherever it is: another process may take its place elsewhere. Throws
  /// InternalError for a layout that is none.
  explicit PublicationPlan(engine::PublicationLayout layout, bool direct = false);

  const engine::PublicationLayout& layout() const { return layout_; }
  const std::vector<PublishedPiece>& pieces() const { return pieces_; }  // by range
  size_t chunks() const { return chunks_; }                              // of a version
  const std::vector<int>& owners() const { return owners_; }             // in order, once each
  const std::vector<int>& ranks() const { return ranks_; }               // owners and receivers, likewise

  bool is_owner(int rank) const;
  bool is_receiver(int rank) const;

  /// Receivers that have their landing in common with this one, in order, and it among them. Nobody: it receives nothing.
  std::vector<int> sharers(int receiver) const;

  /// Which of these brings the piece to that landing.
  int bringer(const PublishedPiece& piece, int receiver) const;

  /// Receivers that get the piece from this rank. All of them bring it in.
  std::vector<int> targets(const PublishedPiece& piece, int rank) const;

  /// Who this receiver, which brings the piece in, gets it from; itself: it owns it.
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
  size_t chunks_ = 0;
  std::vector<int> owners_, ranks_;
};

}  // namespace sluice::comm
