export { type Listener, listListeners, withSockDiag } from './listeners.ts';
