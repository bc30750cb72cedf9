/**
 * A setting of the kernel as sysctl(8) takes it, by its file below /proc/sys: `net/ipv4/conf/eth0.5/rp_filter` is
 * `net.ipv4.conf.eth0/5.rp_filter`, as the dot of a VLAN's link would be one between two folders.
 */
export function settingName(file: string): string {
  return file.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}
