/** What happens between nodeplane and the API server; logs and metrics are made of these. */
export type ApiObservation =
  | {
      /** A request was answered (for a watch: its headers came) or failed. */
      readonly kind: 'request';
      readonly method: string;
      /** `host:port` of the server. */
      readonly host: string;
      /** The HTTP status, or `<error>` as client-go counts requests without an answer. */
      readonly code: number | '<error>';
      readonly seconds: number;
      readonly watch: boolean;
    }
  | {
      /** A request waited for its turn at the rate that --kube-api-qps and --kube-api-burst allow. */
      readonly kind: 'heldBack';
      readonly method: string;
      readonly path: string;
      readonly seconds: number;
    }
  | {
      /** All objects of a resource were read. */
      readonly kind: 'listed';
      readonly resource: string;
      readonly objects: number;
      readonly seconds: number;
      /** Whether they came as a streaming list, in the watch itself. */
      readonly streamed: boolean;
    }
  | { readonly kind: 'watchStarted'; readonly resource: string }
  /** It has stayed open for long enough to be one that works: the server may accept a watch and end it at once, again and again. */
  | { readonly kind: 'watchStands'; readonly resource: string }
  | { readonly kind: 'watchEnded'; readonly resource: string; readonly seconds: number }
  | {
      /** A list or watch failed and is tried again. */
      readonly kind: 'failed';
      readonly resource: string;
      readonly error: Error;
      readonly retryInMs: number;
      /** Whether everything will be listed again. */
      readonly relist: boolean;
    }
  | {
      /** A credential plugin of the kubeconfig runs for long (told once), or has ended. */
      readonly kind: 'credentialPlugin';
      readonly state: 'running' | 'answered' | 'failed';
      readonly command: string;
      readonly seconds: number;
    }
  | { readonly kind: 'eventDropped'; readonly reason: string; readonly cause: string };

/** Told what happens, as it happens. */
export type ApiObserver = (observation: ApiObservation) => void;
