import { describe, expect, it } from 'vitest';
import { formatCidr } from '../core/index.ts';
import { formatBindAddress } from './bind-address.ts';
import { parseAgentConfig } from './config.ts';

describe('parseAgentConfig', () => {
  it('fills in the defaults of kube-proxy', () => {
    const config = parseAgentConfig({ manifests: '/etc/manifests' }, ' Node-1 ');
    expect(config).toMatchObject({
      manifests: '/etc/manifests',
      nodeName: 'node-1',
      proxyMode: 'iptables',
      clusterCidrs: [],
      nodePortAddresses: 'all',
      masqueradeAll: false,
      masqueradeBit: 14,
      syncPeriodMs: 30_000,
      minSyncPeriodMs: 1000,
      iptablesVariant: 'auto',
      logLevel: 'info',
    });
    expect(formatBindAddress(config.healthzBindAddress)).toBe('0.0.0.0:10256');
    expect(formatBindAddress(config.metricsBindAddress)).toBe('127.0.0.1:10249');
  });

  it('reads lists and addresses', () => {
    const config = parseAgentConfig(
      {
        manifests: 'm',
        clusterCidr: '10.244.0.0/16,fd00:10:244::/48',
        nodeportAddresses: '192.168.0.0/24',
        metricsBindAddress: '[::1]:9999',
        healthzBindAddress: '127.0.0.1',
      },
      'n',
    );
    expect(config.clusterCidrs.map(formatCidr)).toEqual(['10.244.0.0/16', 'fd00:10:244::/48']);
    expect((config.nodePortAddresses as never[]).map(formatCidr)).toEqual(['192.168.0.0/24']);
    expect(formatBindAddress(config.metricsBindAddress)).toBe('[::1]:9999');
    expect(formatBindAddress(config.healthzBindAddress)).toBe('127.0.0.1:10256');
  });

  it('reports every problem at once, each with its flag', () => {
    const flags = {
      nodeName: ' ',
      proxyMode: 'userspace',
      clusterCidr: '10.0.0.0/8,10.1.0.0/16',
      nodeportAddresses: '1.2.3.4',
      iptablesMasqueradeBit: '32',
      iptablesSyncPeriod: '1s',
      iptablesMinSyncPeriod: '2s',
      iptablesVariant: 'ebpf',
      healthzBindAddress: 'localhost:1',
      metricsBindAddress: '127.0.0.1:0',
      logLevel: 'loud',
    };
    let message = '';
    try {
      parseAgentConfig(flags, 'n');
    } catch (error) {
      expect(error).toMatchObject({ code: 'ERR_CONFIG' });
      message = (error as Error).message;
    }
    for (const flag of [
      '--manifests',
      '--node-name',
      '--proxy-mode "userspace"',
      '--cluster-cidr "10.0.0.0/8,10.1.0.0/16"',
      '--nodeport-addresses "1.2.3.4"',
      '--iptables-masquerade-bit "32"',
      '--iptables-min-sync-period must not exceed',
      '--iptables-variant "ebpf"',
      '--healthz-bind-address "localhost:1"',
      '--metrics-bind-address "127.0.0.1:0"',
      '--log-level "loud"',
    ]) {
      expect(message).toContain(flag);
    }
  });
});
