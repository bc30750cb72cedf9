export { main, type PluginProcess } from './main.ts';
