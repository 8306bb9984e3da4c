# kube-shunt as an image of some 20 MB without a shell: the daemon, the libraries it needs, the certificates of public CAs,
# and iptables' own programs, for the removal of what kube-proxy left. scripts/image.sh builds it.
#   --build-arg BASE=...   the image that it is built in: Debian 12 or 13, from wherever you have it
ARG BASE=docker.io/library/debian:12
FROM ${BASE} AS build
COPY scripts/install.sh /src/scripts/install.sh
WORKDIR /src
RUN scripts/install.sh && apt-get install -y -qq --no-install-recommends ca-certificates
COPY . /src
RUN scripts/build.sh release kube-shunt
RUN scripts/stage_image.sh build/release/bin/kube-shunt /rootfs

FROM scratch
COPY --from=build /rootfs/ /
# Root, because no runtime gives another user CAP_NET_ADMIN; run it with that capability and no other (deploy/README.md).
USER 0:0
ENV PATH=/usr/sbin
ENTRYPOINT ["/usr/sbin/kube-shunt"]
