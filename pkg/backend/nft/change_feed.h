// What others do to our table, as the kernel tells it.
//
// The seam between the back end and the kernel's notifications; tests put changes of their own
// here. Owned by the sync thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/nft/ruleset.h"
#include "base/result.h"
#include "net/ip_address.h"

namespace shunt::netlink {
class Listener;
}

namespace shunt::backend::nft {

struct ForeignChange {
  enum class Of : std::uint8_t { Table, Set, Chain, Rule, Element } of = Of::Table;
  bool removed = false;
  std::string name;  // of the set or chain; of a rule its chain, of an element its set
  KeyBytes key;      // of an element
};

struct ForeignChanges {
  std::vector<ForeignChange> changes;
  bool lost = false;   // there were more than the socket held
  std::string author;  // "nft (pid 4711)", of the last transaction; "" when not known
};

class ChangeFeed {
 public:
  virtual ~ChangeFeed() = default;
  virtual int fd() const = 0;         // readable: something may have changed
  virtual ForeignChanges take() = 0;  // since the last call; never waits
};

class KernelChangeFeed : public ChangeFeed {
 public:
  // Hears nothing of what the sockets with these port numbers change.
  static Result<std::unique_ptr<ChangeFeed>> open(
      net::Family family, std::span<const std::uint32_t> own_ports);
  KernelChangeFeed(net::Family family, std::unique_ptr<netlink::Listener> listener);
  ~KernelChangeFeed() override;

  int fd() const override;
  ForeignChanges take() override;

 private:
  std::uint8_t family_;
  std::unique_ptr<netlink::Listener> listener_;
};

}  // namespace shunt::backend::nft
