#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// What is before the first line break: of an error, what it is; the lines below say where to look.
std::string_view first_line(std::string_view text);

/// With a to z in place of A to Z; other letters stay, whatever the locale is.
std::string small_letters(std::string text);

/// `text` in double quotes with TOML basic-string escapes.
std::string quoted(std::string_view text);

/// The candidate nearest to `wrong` when it is near enough to be meant, else an empty string.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates);

/// 1 file, 2 files.
std::string plural(int64_t count, std::string_view noun);

/// 830 B, 5.1 MB: powers of 1000, two significant digits at least.
std::string human_bytes(double bytes);
std::string human_bytes(std::integral auto bytes) { return human_bytes(static_cast<double>(bytes)); }

/// 3.14 for two digits after the point.
std::string fixed(double value, int digits);

/// "12 %": a share in whole percents; 0 % of nothing.
std::string percent(double part, double whole);

/// Blanks behind, or before, a text of fewer bytes than `width`.
std::string padded(std::string text, size_t width);
std::string padded_before(const std::string& text, size_t width);

/// 512, 5.1k, 16.4k, 2.3M.
std::string human_count(double count);

/// 0.8 s, 71 s, 4 min 10 s, 2 h 5 min.
std::string human_seconds(double seconds);

/// 2026-01-31T18:00:00Z
std::string utc_text(std::time_t time);

/// The shortest text that reads back as the same number; always with a point or an exponent, so that TOML sees a float.
std::string real_text(double value);

/// True if every byte belongs to well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

}  // namespace sluice
