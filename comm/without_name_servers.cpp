#include "comm/without_name_servers.h"

#include <netinet/in.h>
#include <resolv.h>

#include <utility>

namespace sluice::comm {

// _res is the C library's own for each thread; what a program sets there holds.
WithoutNameServers::WithoutNameServers() {
  if ((_res.options & RES_INIT) == 0) res_init();
  servers_ = std::exchange(_res.nscount, 0);
}

WithoutNameServers::~WithoutNameServers() { _res.nscount = servers_; }

}  // namespace sluice::comm
