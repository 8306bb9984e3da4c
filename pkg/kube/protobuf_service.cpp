// core/v1 Service from protobuf.
#include "kube/protobuf_metadata.h"
#include "kube/protobuf_objects.h"

namespace shunt::kube::protobuf {
namespace {

struct ServiceExtras : NoExtras {
  static void take_label(Service& service, const Message&, const Entry& entry) {
    service.has_proxy_name_label =
        service.has_proxy_name_label || entry.key == kServiceProxyNameLabel;
  }
  // Whatever they hold, they are no reason to lose a Service.
  static void take_annotation(Service& service, const Message&, const Entry& entry) {
    if (entry.key == kIpvsSchedulerAnnotation) {
      service.ipvs_scheduler = entry.value.substr(0, kMaxIpvsScheduler + 1);
    } else if (entry.key == kIpvsWeightsAnnotation) {
      service.ipvs_weights = entry.value.substr(0, kMaxIpvsWeights + 1);
    }
  }
};

void read_port(Message m, ServicePortSpec& out) {
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
      case 5:
        out.node_port = m.int32("nodePort");
        break;
      default:
        m.skip();
    }
  }
}

void read_affinity(Message m, Service& out) {
  while (m.next()) {
    if (m.field() != 1) {
      m.skip();
      continue;
    }
    Message client_ip = m.message("clientIP");
    while (client_ip.next()) {
      if (client_ip.field() == 1) {
        out.client_ip_timeout_seconds = client_ip.int32("timeoutSeconds");
      } else {
        client_ip.skip();
      }
    }
  }
}

void read_spec(Message m, Service& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1: {
        const std::size_t index = out.ports.size();
        read_port(m.message("ports", index), out.ports.emplace_back());
        break;
      }
      case 3:
        out.cluster_ip = m.text("clusterIP");
        break;
      case 4:
        out.type = m.text("type");
        break;
      case 5:
        add_text(m, "externalIPs", out.external_ips);
        break;
      case 7:
        out.session_affinity = m.text("sessionAffinity");
        break;
      case 9:
        add_text(m, "loadBalancerSourceRanges", out.load_balancer_source_ranges);
        break;
      case 11:
        out.external_traffic_policy = m.text("externalTrafficPolicy");
        break;
      case 12:
        out.health_check_node_port = m.int32("healthCheckNodePort");
        break;
      case 14:
        read_affinity(m.message("sessionAffinityConfig"), out);
        break;
      case 18:
        add_text(m, "clusterIPs", out.cluster_ips);
        break;
      case 19:
        add_text(m, "ipFamilies", out.ip_families);
        break;
      case 22:
        out.internal_traffic_policy = m.text("internalTrafficPolicy");
        break;
      default:
        m.skip();
    }
  }
}

void read_ingress(Message m, LoadBalancerIngress& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        out.ip = m.text("ip");
        break;
      case 3:
        out.ip_mode = m.text("ipMode");
        break;
      default:
        m.skip();
    }
  }
}

void read_status(Message m, Service& out) {
  while (m.next()) {
    if (m.field() != 1) {
      m.skip();
      continue;
    }
    Message balancer = m.message("loadBalancer");
    while (balancer.next()) {
      if (balancer.field() == 1) {
        const std::size_t index = out.ingress.size();
        read_ingress(balancer.message("ingress", index), out.ingress.emplace_back());
      } else {
        balancer.skip();
      }
    }
  }
}

void read(Message m, Service& out) {
  while (m.next()) {
    switch (m.field()) {
      case 1:
        read_metadata<ServiceExtras>(m.message("metadata"), out);
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

}  // namespace

Findings read_object(std::string_view bytes, Service& out) {
  return findings_of([&] { read(Message(bytes), out); });
}

}  // namespace shunt::kube::protobuf
