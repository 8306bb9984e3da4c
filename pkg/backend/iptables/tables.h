// The seam between the back end and iptables: tests put a kernel in memory here.
//
// One thread. save() and restore() run a program and block until it has ended; the lock of
// the legacy variant is waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backend/iptables/listing.h"
#include "backend/iptables/port_rules.h"
#include "backend/iptables/variant.h"
#include "base/result.h"

namespace shunt::backend::iptables {

class Tables {
 public:
  virtual ~Tables() = default;
  // What iptables-save prints of one table; "" when there is none yet.
  virtual Result<std::string> save(Table table) = 0;
  // Errc::Again: nobody's fault (the lock, memory, the program was stopped). Others: iptables or
  // the kernel refuse the text; commits before the refused one stand.
  virtual Result<> restore(const std::string& text) = 0;
  // Another number when anybody has changed any table, as far as can be told for nothing: the nft
  // variant counts transactions, of the legacy one we see sizes. None: cannot be told.
  virtual std::optional<std::uint64_t> generation() = 0;
  // Whether that is one more with each commit of a restore.
  virtual bool counts_commits() const = 0;
  // The same number for as long as nobody has changed a chain KUBE-... or a rule in one or in a
  // base chain of both tables: the kernel's numbers of rules are looked at, which is some thirty
  // times cheaper than save(). None: cannot be told (the legacy variant), or changing at this
  // moment.
  virtual std::optional<std::uint64_t> fingerprint() = 0;
};

// What both tables hold of ours.
Result<Listing> read_tables(Tables& tables);

// Speaks to the network namespace of the thread. An error when the programs are not there, or are
// older than 1.6.2, which can wait for the lock in iptables-restore and masquerade to a source port
// at random.
Result<std::unique_ptr<Tables>> open_tables(VariantKind kind, net::Family family);

}  // namespace shunt::backend::iptables
