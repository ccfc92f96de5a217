#pragma once

namespace sluice::comm {

/// As long as it lives, the thread that made it asks no name server: names come from the machine's own files, or are not found.
///
/// LibTorch asks what each address that it connects to is called, for its log. One answer that is lost on the way costs 5 s, in
/// which the other ranks wait. Our addresses are digits: nothing that anybody needs is asked.
class WithoutNameServers {
 public:
  WithoutNameServers();
  ~WithoutNameServers();

  WithoutNameServers(const WithoutNameServers&) = delete;
  WithoutNameServers& operator=(const WithoutNameServers&) = delete;

 private:
  int servers_ = 0;  // how many this thread asked before
};

}  // namespace sluice::comm
