export { countBeingOpened, type Listener, listListeners, listSendingPorts, withSockDiag } from './listeners.ts';
