export { decodeMessage } from './encode-message.ts';
export {
  encodeEvent,
  encodeList,
  encodeObject,
  hasMessages,
  inFrame,
  type TypedList,
  type TypedObject,
} from './encode-object.ts';
