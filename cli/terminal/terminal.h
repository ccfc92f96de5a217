#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace sluice::cli {

struct TerminalSize {
  size_t columns = 80;
  size_t rows = 24;
};

/// Takes back an unfinished line of a terminal.
inline constexpr const char* kClearLine = "\r\033[K";

/// Of the terminal that a stream writes to; 80 x 24 where it does not tell.
TerminalSize terminal_size(std::FILE* stream = stdout);

/// Prints a text that may hold what files and models say: on a terminal with escapes for what could steer it, lines kept; into a
/// pipe or a file byte for byte.
void print_text(std::string_view text, std::FILE* stream = stdout);

/// `width` characters, of which done / all are `#` and the others `-`.
std::string bar(double done, double all, size_t width);

/// Takes over the terminal of standard output while it lives: the other screen, no cursor, keys that arrive without Enter and are
/// not shown. Gives everything back in its destructor; Ctrl-C stays a signal. One at a time in a process, used from one thread.
class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  /// Replaces what is shown by the first lines of `text`, as many as there is room for; lines must not be wider than the
  /// terminal.
  void show(std::string_view text);

  /// Waits for: a key. Ends when: one was pressed, `limit` is over or a signal arrived. Zero: no key.
  char wait_for_key(std::chrono::milliseconds limit);

 private:
  bool keyboard_ = false;  // standard input is a terminal too
  termios before_{};
};

}  // namespace sluice::cli
