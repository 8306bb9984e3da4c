// One rule, as iptables-save prints it behind the name of its chain. Both variants print the same,
// and iptables-restore reads it back, so that what we want and what the kernel has are compared as
// texts. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/cidr.h"
#include "net/socket_address.h"

namespace shunt::backend::iptables {

class Rule {
 public:
  // What iptables prints in front, whatever the order in which it was said. A range of everything
  // says nothing.
  Rule& from(const net::Cidr& range, bool negated = false);
  Rule& to(const net::Cidr& range, bool negated = false);
  Rule& in_by(std::string_view device, bool negated = false);  // "name", or "prefix+"
  Rule& protocol(net::Protocol protocol);

  // Matches, in order. What is not printable in a comment, or needs escaping there, becomes '?',
  // and what the kernel has no room for is cut.
  Rule& comment(std::string_view text);
  Rule& match(std::string_view text);  // "-m mark --mark 0x4000/0x4000"
  Rule& to_port(net::Port port);       // after protocol()

  Rule& jump(std::string_view target);  // "KUBE-MARK-MASQ", "DNAT --to-destination 10.0.0.1:80"

  std::string text() const;

  static constexpr std::size_t kLongestComment = 255;  // XT_MAX_COMMENT_LEN, with its NUL

 private:
  std::string source_;
  std::string destination_;
  std::string device_;
  std::string_view protocol_;
  std::string matches_;
  std::string target_;
};

// A range of one address.
net::Cidr alone(const net::IpAddress& ip);

// "-m statistic ..." that lets one of `choices` packets through, in the steps of the kernel, which
// draws 31 bits.
std::string one_of(std::size_t choices);

}  // namespace shunt::backend::iptables
