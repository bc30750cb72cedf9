import type { ApiObject } from '../../fakes/api-server/index.ts';

// One object of each kind that kubectl shows, with a value in every field that the fake's protobuf has.

const WHEN = '2026-01-02T03:04:05Z';

const ownedBy = (name: string) => ({ apiVersion: 'v1', kind: 'Service', name, uid: 'u-1' });

export const WHOLE_SERVICE: ApiObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name: 'web',
    namespace: 'demo',
    generateName: 'we',
    generation: 3,
    labels: { tier: 'front', app: 'web' },
    annotations: { 'example.test/note': 'gr\u00fc\u00dfe' },
    deletionTimestamp: WHEN,
    deletionGracePeriodSeconds: 30,
    finalizers: ['service.kubernetes.io/load-balancer-cleanup'],
    ownerReferences: [{ ...ownedBy('parent'), controller: true, blockOwnerDeletion: false }],
  },
  spec: {
    type: 'LoadBalancer',
    clusterIP: '10.96.0.10',
    clusterIPs: ['10.96.0.10', 'fd00:96::10'],
    ipFamilies: ['IPv4', 'IPv6'],
    ipFamilyPolicy: 'PreferDualStack',
    externalIPs: ['192.0.2.80'],
    selector: { app: 'web' },
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
    loadBalancerIP: '198.51.100.7',
    loadBalancerSourceRanges: ['203.0.113.0/24'],
    loadBalancerClass: 'example.test/lb',
    externalName: 'elsewhere.example.test',
    externalTrafficPolicy: 'Local',
    internalTrafficPolicy: 'Local',
    healthCheckNodePort: 31_000,
    publishNotReadyAddresses: true,
    allocateLoadBalancerNodePorts: false,
    trafficDistribution: 'PreferClose',
    ports: [
      { name: 'http', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 30_080, appProtocol: 'kubernetes.io/h2c' },
      { name: 'dns', protocol: 'UDP', port: 53, targetPort: 'dns-port' },
    ],
  },
  status: {
    loadBalancer: {
      ingress: [
        { ip: '198.51.100.7', ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP', error: 'example.test/Full' }] },
        { hostname: 'lb.example.test' },
      ],
    },
    conditions: [
      {
        type: 'LoadBalancerPortsError',
        status: 'True',
        observedGeneration: 3,
        lastTransitionTime: WHEN,
        reason: 'Full',
        message: 'no port left',
      },
    ],
  },
};

export const WHOLE_SLICE: ApiObject = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-a', namespace: 'demo', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  endpoints: [
    {
      addresses: ['10.244.1.7'],
      conditions: { ready: true, serving: true, terminating: false },
      hostname: 'web-0',
      nodeName: 'node-1',
      zone: 'zone-a',
      targetRef: { kind: 'Pod', namespace: 'demo', name: 'web-0', uid: 'u-2', resourceVersion: '7' },
      hints: { forZones: [{ name: 'zone-a' }], forNodes: [{ name: 'node-1' }] },
      deprecatedTopology: { rack: 'r1' },
    },
    { addresses: ['10.244.2.9'], conditions: { ready: false } },
    { addresses: ['10.244.3.9'], conditions: {} },
  ],
  ports: [
    { name: 'http', protocol: 'TCP', port: 8080, appProtocol: 'http' },
    { name: '', protocol: 'UDP', port: 53 },
  ],
};

export const WHOLE_NODE: ApiObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-1', labels: { 'topology.kubernetes.io/zone': 'zone-a' } },
  spec: {
    podCIDR: '10.244.1.0/24',
    podCIDRs: ['10.244.1.0/24', 'fd00:244:1::/64'],
    providerID: 'example://node-1',
    externalID: 'old-1',
    unschedulable: true,
    taints: [{ key: 'node.kubernetes.io/unschedulable', value: 'v', effect: 'NoSchedule', timeAdded: WHEN }],
  },
  status: {
    capacity: { cpu: '4', memory: '8148376Ki', pods: '110' },
    allocatable: { cpu: '3920m', memory: '7Gi', pods: '110' },
    phase: 'Running',
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        lastHeartbeatTime: '2026-01-02T03:09:05Z',
        lastTransitionTime: WHEN,
        reason: 'KubeletReady',
        message: 'kubelet is posting ready status',
      },
    ],
    addresses: [
      { type: 'InternalIP', address: '192.0.2.1' },
      { type: 'Hostname', address: 'node-1' },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
    nodeInfo: {
      machineID: 'm-1',
      systemUUID: 's-1',
      bootID: 'b-1',
      kernelVersion: '6.18.0',
      osImage: 'Debian GNU/Linux 12',
      containerRuntimeVersion: 'containerd://2.0.0',
      kubeletVersion: 'v1.36.2',
      kubeProxyVersion: 'v1.36.2',
      operatingSystem: 'linux',
      architecture: 'amd64',
      swap: { capacity: 4_294_967_296 },
    },
    images: [{ names: ['example.test/web:1'], sizeBytes: 5_368_709_120 }],
    volumesInUse: ['kubernetes.io/csi/a'],
    volumesAttached: [{ name: 'kubernetes.io/csi/a', devicePath: '/dev/vdb' }],
    runtimeHandlers: [{ name: 'runc', features: { recursiveReadOnlyMounts: true, userNamespaces: false } }],
    features: { supplementalGroupsPolicy: true },
    declaredFeatures: ['ExampleFeature'],
  },
};

export const WHOLE_SERVICE_CIDR: ApiObject = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'ServiceCIDR',
  metadata: { name: 'kubernetes' },
  spec: { cidrs: ['10.96.0.0/16', 'fd00:96::/112'] },
  status: {
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: WHEN, reason: 'Fine', message: 'ready' }],
  },
};
