export { countBeingOpened, hasSocket, type Listener, listListeners, withSockDiag } from './listeners.ts';
