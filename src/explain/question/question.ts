import { type IpAddress, type IpProtocol, NodeplaneError } from '../../core/index.ts';

/** Where the connection goes that is asked about. */
export type Destination =
  | {
      readonly kind: 'service';
      readonly namespace: string;
      readonly name: string;
      /** A number or the name of a port. @default its only or first port */
      readonly port?: string | undefined;
    }
  | { readonly kind: 'address'; readonly address: IpAddress; readonly port?: number | undefined }
  /** A NodePort at this node's own address. */
  | { readonly kind: 'node-port'; readonly port: number }
  | {
      readonly kind: 'pod';
      readonly namespace: string;
      readonly name: string;
      readonly port?: number | undefined;
    };

/** Where it comes from. */
export type Source =
  | { readonly kind: 'any-pod' }
  | { readonly kind: 'node' }
  | { readonly kind: 'address'; readonly address: IpAddress }
  | { readonly kind: 'pod'; readonly namespace: string; readonly name: string };

/** What is asked. */
export interface Question {
  readonly destination: Destination;
  readonly source: Source;
  /** @default that of the port, where only one fits; TCP */
  readonly protocol?: IpProtocol | undefined;
}

/** Why a text is no question, in words for whoever wrote it. */
export class QuestionError extends NodeplaneError {
  constructor(message: string) {
    super('ERR_EXPLAIN_QUESTION', message);
  }
}
