export { countBeingOpened, type Listener, listListeners, withSockDiag } from './listeners.ts';
