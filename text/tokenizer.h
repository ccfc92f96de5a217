#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe.h"
#include "text/tokenizer_file.h"

namespace sluice::text {

/// A byte-level BPE tokenizer from a Hugging Face tokenizer.json (GPT-2, Llama 3, Qwen, Falcon, ...).
/// Gives the ids and texts of the `tokenizers` package. Immutable after load: const use from many threads.
///
/// Not supported, and refused by name at load: other models (WordPiece, Unigram, SentencePiece's byte fallback), normalizers
/// other than NFC, pre-tokenizers other than ByteLevel, Split, Digits and Punctuation, decoders other than ByteLevel.
/// Unicode properties are those of the installed Oniguruma and utf8proc. The reference mixes tables of several ages (its NFC and
/// its Punctuation know fewer characters, its regexes more), so a few characters younger than Unicode 9 may be cut differently.
class Tokenizer {
 public:
  /// `folder_or_file`: a model folder, or its tokenizer.json. Reads tokenizer_config.json beside it when there is one.
  /// Throws UserError naming file and key for whatever is missing, malformed or not supported.
  static Tokenizer load(const std::filesystem::path& folder_or_file);

  /// The ids of `utf8`. Added tokens are recognised in the text. With `add_special` the special tokens that the file's template
  /// puts around a text are added. Bytes that are not UTF-8 count as U+FFFD, one for each broken sequence. Bytes that no token
  /// stands for are dropped, as in the reference; see uncovered_bytes(). Throws UserError for a text longer than 512 MiB.
  std::vector<int64_t> encode(std::string_view utf8, bool add_special = false) const;

  /// The text of `ids`; always UTF-8, with U+FFFD where tokens hold part of a character. Ids without a token have no text: models
  /// pad their embeddings. With `skip_special` special tokens are left out.
  std::string decode(std::span<const int64_t> ids, bool skip_special = false) const;

  /// One more than the largest id: the least number of rows of an embedding.
  int64_t vocab_size() const { return static_cast<int64_t>(tokens_.size()); }

  /// `token` as the vocabulary spells it ("Ġthe").
  std::optional<int64_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int64_t id) const;
  bool is_special(int64_t id) const;

  /// The bytes that `id` stands for, which may be part of a character; empty when no token has this id.
  std::string_view token_bytes(int64_t id) const;

  /// The bytes that no token stands for, in order. Empty for most tokenizers; not for Falcon's, nor for a toy's.
  const std::string& uncovered_bytes() const { return uncovered_bytes_; }

  /// The "eos_token" of tokenizer_config.json, if it names one.
  std::optional<int64_t> end_of_sequence() const { return end_of_sequence_; }

 private:
  Tokenizer(TokenizerFile file, std::string name);

  void encode_text(std::string_view text, Bpe::Workspace& workspace, std::vector<int64_t>& ids) const;
  void encode_words(std::string_view normalized, Bpe::Workspace& workspace, std::vector<int64_t>& ids) const;
  const TokenizerFile::Token* find(int64_t id) const;
  void read_config(const std::filesystem::path& path);

  std::string name_;                          // the file, for messages
  std::vector<TokenizerFile::Token> tokens_;  // [id]
  std::unordered_map<std::string, int64_t> ids_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokenFinder verbatim_tokens_;    // looked for in the text as it is
  AddedTokenFinder normalized_tokens_;  // looked for after normalisation
  std::string uncovered_bytes_;
  Bpe bpe_;
  std::vector<int64_t> prefix_;
  std::vector<int64_t> suffix_;
  std::optional<int64_t> end_of_sequence_;
};

}  // namespace sluice::text
