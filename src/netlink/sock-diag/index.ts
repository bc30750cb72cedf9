export { type Listener, listListeners } from './listeners.ts';
