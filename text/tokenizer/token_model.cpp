#include "text/tokenizer/token_model.h"

namespace sluice::text {

TokenModel::TokenModel(Rules rules)
    : kind_([&rules]() -> Kind {
        if (auto* bpe = std::get_if<BpeRules>(&rules)) return Bpe(std::move(*bpe));
        if (const auto* unigram = std::get_if<UnigramRules>(&rules)) return Unigram(*unigram);
        if (const auto* words = std::get_if<WordLevelRules>(&rules)) return WordLevel(*words);
        return WordPiece(std::get<WordPieceRules>(rules));
      }()) {}

void TokenModel::encode(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const {
  if (const auto* bpe = std::get_if<Bpe>(&kind_)) return bpe->encode(word, workspace.bpe, ids);
  if (word.empty()) return;
  if (const auto* words = std::get_if<WordLevel>(&kind_)) return ids.push_back(words->id_of(word));
  workspace.known.belong_to(identity_);
  const bool may_be_known = word.size() <= KnownWords::kLongestWord;
  const uint64_t hash = may_be_known ? WordTable::hash(word) : 0;
  std::span<const int32_t> known;
  if (may_be_known && workspace.known.find(word, hash, known)) {
    ids.insert(ids.end(), known.begin(), known.end());
    return;
  }
  if (const auto* unigram = std::get_if<Unigram>(&kind_)) {
    unigram->encode(word, workspace.unigram, workspace.parts);
  } else {
    std::get<WordPiece>(kind_).encode(word, workspace.parts);
  }
  ids.insert(ids.end(), workspace.parts.begin(), workspace.parts.end());
  if (may_be_known) workspace.known.remember(word, hash, workspace.parts);
}

std::string TokenModel::dropped_bytes() const {
  const auto* bpe = std::get_if<Bpe>(&kind_);
  return bpe ? bpe->dropped_bytes() : std::string();  // the others have a token for what is unknown
}

}  // namespace sluice::text
