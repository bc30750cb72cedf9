/** A client that keeps its endpoint. */
export interface AffinityClient {
  readonly client: string;
  /** `10.244.1.5:8080` */
  readonly endpoint: string;
  /** How long it is remembered from now on, if it does not come again; null: the kernel does not say. */
  readonly remainingSeconds: number | null;
}
