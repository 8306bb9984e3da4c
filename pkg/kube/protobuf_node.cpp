// core/v1 Node and networking.k8s.io/v1 ServiceCIDR from protobuf.
#include "kube/protobuf_metadata.h"
#include "kube/protobuf_objects.h"

namespace shunt::kube::protobuf {
namespace {

struct NodeExtras : NoExtras {
  static void take_label(Node& node, const Message& labels, const Entry& entry) {
    if (entry.key == kZoneLabel) {
      node.zone = checked(labels, kZoneLabel, entry.value);
    }
  }
  static void take_deletion(Node& node) { node.deleting = true; }
};

void read_spec(Message m, Node& out) {
  while (m.next()) {
    switch (m.field()) {
      case 5:
        add_named(m.message("taints", out.taint_keys.size()), 1, "key", out.taint_keys);
        break;
      case 7:
        add_text(m, "podCIDRs", out.pod_cidrs);
        break;
      default:
        m.skip();
    }
  }
}

void read_address(Message m, NodeAddress& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.type = m.text("type");
        break;
      case 2:
        out.address = m.text("address");
        break;
      default:
        m.skip();
    }
  }
}

void read_status(Message m, Node& out) {
  while (m.next()) {
    if (m.field() == 5) {
      const std::size_t index = out.addresses.size();
      read_address(m.message("addresses", index), out.addresses.emplace_back());
    } else {
      m.skip();
    }
  }
}

void read(Message m, Node& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        read_metadata<NodeExtras>(m.message("metadata"), out);
        break;
      case 2:
        read_spec(m.message("spec"), out);
        break;
      case 3:
        read_status(m.message("status"), out);
        break;
      default:
        m.skip();
    }
  }
}

// --- ServiceCIDR

void read_spec(Message m, ServiceCidr& out) {
  while (m.next()) {
    if (m.field() == 1) {
      add_text(m, "cidrs", out.cidrs);
    } else {
      m.skip();
    }
  }
}

void read(Message m, ServiceCidr& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        read_metadata<NoExtras>(m.message("metadata"), out);
        break;
      case 2:
        read_spec(m.message("spec"), out);
        break;
      default:
        m.skip();
    }
  }
}

}  // namespace

Findings read_object(std::string_view bytes, Node& out) {
  return findings_of([&] { read(Message(bytes), out); });
}
Findings read_object(std::string_view bytes, ServiceCidr& out) {
  return findings_of([&] { read(Message(bytes), out); });
}

}  // namespace shunt::kube::protobuf
