import type { IpAddress, IpFamily, IpProtocol } from '../../core/index.ts';
import type { DestinationKind, Knowledge, KnownPort, KnownService } from '../knowledge/index.ts';
import type { LocalPod } from '../node/index.ts';
import type { KnownBytes } from '../packet/index.ts';
import type { Step } from '../walk/index.ts';
import type { Finding } from './report.ts';

/** Who connects, found on this node. */
export type Client =
  | { readonly kind: 'pod'; readonly ip: IpAddress; readonly pod: LocalPod }
  | { readonly kind: 'node'; readonly ip: IpAddress }
  /** Its packets come in by a link of this node. */
  | {
      readonly kind: 'outside';
      readonly ip: IpAddress;
      readonly link: { readonly index: number; readonly name: string };
    };

/** What is connected to. */
export interface Target {
  readonly family: IpFamily;
  readonly protocol: IpProtocol;
  readonly ip: IpAddress;
  readonly port: number;
  /** Undefined: an address that is no Service's. */
  readonly service:
    | { readonly service: KnownService; readonly port: KnownPort; readonly via: DestinationKind }
    | undefined;
  /** What is wrong if rules leave it to this node and no process listens: it was meant as a NodePort. @default nothing */
  readonly unheard?: Finding;
}

/** A question with everything in it found. */
export interface Asked {
  readonly knowledge: Knowledge;
  readonly target: Target;
  readonly client: Client;
  /** Whether packets may be sent to find out. */
  readonly probe: boolean;
}

/** Where a packet may end up: an endpoint, or the address that was asked for. Several with one address are several ways there. */
export interface Goal {
  /** `10.244.1.9:8080` */
  readonly address: string;
  readonly ip: IpAddress;
  readonly port: number;
  /** Whether the sender's address is changed on the way; undefined: it is not known. */
  readonly masqueraded: boolean | undefined;
  /** The last rule that translates it on its way. @default none does, or that is not known */
  readonly translatedBy?: Step | undefined;
  /** The source it arrives with; undefined: not known. */
  readonly source: IpAddress | undefined;
  /** IPVS sends it, as this node's own: it is not forwarded, its answers are. */
  readonly byIpvs: boolean;
  /** The mark that rules have put on it before it is routed. @default none */
  readonly mark?: number | undefined;
  /** The source that it is routed with, where rules of this node change it before. @default that of the client */
  readonly routedFrom?: IpAddress | undefined;
  /** Rules keep it out of connection tracking. @default they do not */
  readonly untracked?: boolean | undefined;
  /** The mark that rules have put on its flow (`ct mark`), in host byte order. @default not known */
  readonly flowMark?: KnownBytes | undefined;
  /** The mark that a process of this node gets it with. @default it goes to others */
  readonly heardMark?: KnownBytes | undefined;
  /** What of the rules decides whether packets take this way, and is not known, in words. @default nothing */
  readonly unsure?: string | undefined;
}
