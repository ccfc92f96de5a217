#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer/matcher.h"
#include "text/tokenizer/metaspace.h"
#include "text/tokenizer/tokenizer_decoder.h"

namespace sluice::text {

// The steps of a Decoder, as the reference defines them. Each writes to `next`, which it borrows, as it does its settings.

/// Tokens in the byte-level alphabet become text, U+FFFD for what is not UTF-8; a token with other characters is its own bytes.
/// Makes one token of all.
std::unique_ptr<DecoderStep> byte_level_step(DecoderStep& next);

/// A run of tokens <0x00> to <0xFF> becomes the text of these bytes, or one U+FFFD a byte if the run is not UTF-8.
std::unique_ptr<DecoderStep> byte_fallback_step(DecoderStep& next);

/// Makes one token of all.
std::unique_ptr<DecoderStep> fuse_step(DecoderStep& next);

/// Borrows all. `fed`: the bytes of all tokens so far; what is written must stay in proportion to it.
struct ReplaceSettings {
  const Matcher& matcher;
  const std::string& content;
  const std::string& where;
  const size_t& fed;
};

/// In each token `content` for what the matcher finds. Throws UserError when the text grows out of all proportion.
std::unique_ptr<DecoderStep> replace_step(const ReplaceSettings& settings, DecoderStep& next);

/// Takes up to `start` characters `content` from the front of each token, and up to `stop` from its end.
std::unique_ptr<DecoderStep> strip_step(const std::string& content, size_t start, size_t stop, DecoderStep& next);

/// A blank for each replacement character; in the first token nothing, if the tokenizer writes one before a text.
std::unique_ptr<DecoderStep> metaspace_step(const MetaspaceSettings& settings, DecoderStep& next);

/// A blank for each `suffix`, and nothing for that of the last token.
std::unique_ptr<DecoderStep> suffix_step(const std::string& suffix, DecoderStep& next);

/// Takes `prefix` from the front of each token but the first, or writes a blank before one without it. With `cleanup` each
/// token then loses blanks before signs and in contractions, by the replacements that the reference has.
std::unique_ptr<DecoderStep> word_piece_step(const std::string& prefix, bool cleanup, DecoderStep& next);

/// A blank between tokens.
std::unique_ptr<DecoderStep> join_step(DecoderStep& next);

/// `text` with `to` for each `from`, which is not empty.
std::string with_all_replaced(std::string_view text, std::string_view from, std::string_view to);

/// The byte of <0x00> to <0xFF>, or -1.
int fallback_byte(std::string_view token);

}  // namespace sluice::text
