#pragma once

#include <functional>
#include <string>

namespace sluice::engine {

/// A text column that a node reads, of which it cannot use every text: the label of a scorer, the domain that chooses a model.
/// What it could not use would end the run when it comes there; the source that reads the column out of files refuses it before.
struct TextCheck {
  std::string column;

  /// Throws UserError for a text that the node cannot use. The message goes on from "it", as "holds no number" does. From any
  /// thread.
  std::function<void(const std::string& text)> check;

  std::string node;  // the plan fills it in

  /// The same, but the message is a whole one: `node 'score' cannot use label "x": it holds no number`.
  void look_at(const std::string& text) const;
};

}  // namespace sluice::engine
