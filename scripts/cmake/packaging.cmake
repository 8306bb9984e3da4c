# What is installed, and the Debian package. scripts/package.sh builds it; so does any packager with
#   DESTDIR=... cmake --install build/release --prefix /usr
include(GNUInstallDirs)

install(TARGETS kube-shunt RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(FILES deploy/systemd/kube-shunt.service deploy/systemd/kube-shunt-setup.service DESTINATION lib/systemd/system)
install(FILES deploy/systemd/kube-shunt.sysusers DESTINATION lib/sysusers.d RENAME kube-shunt.conf)
# The one place that is not below the prefix: where the unit looks for it.
install(FILES deploy/systemd/config.yaml DESTINATION /etc/kube-shunt)
set(documents ${CMAKE_INSTALL_DATAROOTDIR}/doc/kube-shunt)
install(FILES README.md deploy/debian/copyright DESTINATION ${documents})
install(FILES deploy/README.md DESTINATION ${documents} RENAME deploying.md)
execute_process(
  COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/deploy/debian/changelog OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz)
install(FILES ${PROJECT_BINARY_DIR}/changelog.gz DESTINATION ${documents})
install(FILES deploy/systemd/kubeconfig.example DESTINATION ${documents}/examples)
install(DIRECTORY deploy/kubernetes DESTINATION ${documents}/examples)

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "kube-shunt maintainers <kube-shunt@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Kubernetes Services on a node, by nftables")
set(CPACK_PACKAGE_DESCRIPTION
  "kube-shunt replaces kube-proxy: it watches Services and EndpointSlices
and keeps the kernel's nftables state equal to them, changing only what
changed.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# systemd makes the daemon's user, too. iptables is for what kube-proxy left; the suggestions are for looking.
set(CPACK_DEBIAN_PACKAGE_DEPENDS systemd)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, iptables")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "ipvsadm, nftables")
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
  ${PROJECT_SOURCE_DIR}/deploy/debian/prerm ${PROJECT_SOURCE_DIR}/deploy/debian/postrm)
include(CPack)
