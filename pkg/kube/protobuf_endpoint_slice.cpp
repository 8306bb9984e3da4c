// discovery.k8s.io/v1 EndpointSlice from protobuf.
#include "kube/protobuf_metadata.h"
#include "kube/protobuf_objects.h"
#include "kube/timestamp.h"
#include "net/ip_address.h"

namespace shunt::kube::protobuf {
namespace {

using Remarks = std::vector<std::string>;

struct SliceExtras : NoExtras {
  static void take_label(EndpointSlice& slice, const Message& labels, const Entry& entry) {
    if (entry.key == kServiceNameLabel) {
      slice.service_name = checked(labels, kServiceNameLabel, entry.value);
    }
    slice.has_headless_label = slice.has_headless_label || entry.key == kHeadlessLabel;
  }
  static void take_annotation(EndpointSlice& slice, const Message&, const Entry& entry) {
    if (entry.key == kTriggerTimeAnnotation) {
      slice.trigger_time_ns = unix_nanoseconds(parse_rfc3339(entry.value));
    }
  }
};

void read_conditions(Message m, SliceEndpoint& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.ready = m.boolean("ready");
        break;
      case 2:
        out.serving = m.boolean("serving");
        break;
      case 3:
        out.terminating = m.boolean("terminating");
        break;
      default:
        m.skip();
    }
  }
}

void read_hints(Message m, SliceEndpoint& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        add_named(m.message("forZones", out.zone_hints.size()), 1, "name", out.zone_hints);
        break;
      case 2:
        add_named(m.message("forNodes", out.node_hints.size()), 1, "name", out.node_hints);
        break;
      default:
        m.skip();
    }
  }
}

// Whether it had to be an address is known at the end of the slice: addressType comes last.
void read_address(Message& m, std::size_t index, SliceEndpoint& out, Remarks& remarks) {
  const std::string_view text = m.text("addresses", index);
  if (index != 0) {
    return;
  }
  out.address = net::parse_ip(text);
  if (!out.address) {
    remarks.push_back(
        m.path("addresses", index) + ": not an IP address: \"" + excerpt(text) + "\"");
  }
}

void read_endpoint(Message m, SliceEndpoint& out, Remarks& remarks) {
  std::size_t addresses = 0;
  while (m.next()) {
    switch (m.field()) {
      case 1:
        read_address(m, addresses++, out, remarks);
        break;
      case 2:
        read_conditions(m.message("conditions"), out);
        break;
      case 6:
        out.node_name = m.text("nodeName");
        break;
      case 7:
        out.zone = m.text("zone");
        break;
      case 8:
        read_hints(m.message("hints"), out);
        break;
      default:
        m.skip();
    }
  }
}

void read_port(Message m, SlicePort& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.name = m.text("name");
        break;
      case 2:
        out.protocol = m.text("protocol");
        break;
      case 3:
        out.port = m.int32("port");
        break;
      default:
        m.skip();
    }
  }
}

void read(Message m, EndpointSlice& out, Remarks& remarks) {
  out.endpoints.reserve(m.count_ahead(2));
  while (m.next()) {
    switch (m.field()) {
      case 1:
        read_metadata<SliceExtras>(m.message("metadata"), out);
        break;
      case 2: {
        const std::size_t index = out.endpoints.size();
        read_endpoint(m.message("endpoints", index), out.endpoints.emplace_back(), remarks);
        break;
      }
      case 3: {
        const std::size_t index = out.ports.size();
        read_port(m.message("ports", index), out.ports.emplace_back());
        break;
      }
      case 4:
        out.address_type = m.text("addressType");
        break;
      default:
        m.skip();
    }
  }
}

}  // namespace

Findings read_object(std::string_view bytes, EndpointSlice& out) {
  Findings findings;
  findings.mistake = caught([&] { read(Message(bytes), out, findings.remarks); });
  return findings;
}

}  // namespace shunt::kube::protobuf
