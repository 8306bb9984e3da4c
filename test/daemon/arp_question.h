// "Who has this address?" on a link, asked as any neighbour asks.
#pragma once

#include "net/ip_address.h"
#include "netns/netns.h"

namespace shunt::test {

// Whether somebody on `device` answers within half a second. IPv4.
bool arp_answers(const lab::Netns& where, const char* device, const net::IpAddress& ip);

}  // namespace shunt::test
